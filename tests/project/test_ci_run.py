""".ci/run: whoever keeps only the end of its output learns which tests failed, and why."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / ".ci"
LEISURE = Path(__file__).parents[1] / "leisure.py"
#: What a nested pytest is to do without, to start at once.
BARE = {"MAKEFLAGS": "", "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

#: In place of pytest, where a busy machine would need the time that the test gives to other suites.
AT_ONCE = "echo '=== 1 passed in 0.01s ===' #"

SUITES = """
.PHONY: setup test-cluster test-conformance test test-aws-lc heavy debug fuzz
setup: ; @{setup}
test-cluster: ; @{pytest} suite_good.py
test-conformance: ; @{conformance}
test: ; @{pytest} $(or $(ARGS),suite_bad.py)
test-aws-lc: ; @{pytest} suite_good.py
heavy: ; @{pytest} suite_good.py
debug: ; @{pytest} $(or $(ARGS),suite_worse.py)
fuzz: ; @{fuzz}
"""

GOOD = "def test_good(): pass\n"

BAD = """
import pytest

def test_good(): pass

def test_bad(): assert 1 + 1 == 3, "arithmetic"

@pytest.fixture
def broken(): raise OSError("no such device")

def test_never_run(broken): pass
"""

WORSE = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_worse(number):
    print("\\n".join(f"line {{i}}" for i in range(100)))
    print("x" * 1000)
    assert False
"""


CROWDED = """
import pathlib

def test_good(): pass

def test_crowded():
    first = pathlib.Path("once")
    try:
        assert first.exists() or first.touch()
    except AssertionError as fault:
        fault.add_note("a.py::crowded: this gateway served 1 tests before: a.py::one[x y]")
        raise
"""


def run(
    place: Path,
    *,
    worse: int = 0,
    bad: str = GOOD,
    begin_until: int = 1000,
    stop_after: int = 1000,
    pytest: str = f"{sys.executable} -m pytest -ra -p no:cacheprovider --rootdir .",
    **recipes: str,
) -> tuple[int, list[str]]:
    """Run a copy of the script where `make` has the same targets and small real suites; return its exit status and lines."""
    shutil.copytree(CI, place / ".ci")
    shutil.copy(LEISURE, place / "conftest.py")
    recipes = {"setup": "true", "conformance": "true", "fuzz": "true", **recipes}
    (place / "Makefile").write_text(SUITES.format(pytest=pytest, **recipes))
    (place / "suite_good.py").write_text(GOOD)
    (place / "suite_bad.py").write_text(bad)
    (place / "suite_worse.py").write_text(WORSE.format(count=worse) if worse else GOOD)
    done = subprocess.run(
        [place / ".ci" / "run"],
        env={
            **os.environ,
            **BARE,
            "BEGIN_UNTIL": str(begin_until),
            "STOP_AFTER": str(stop_after),
            "LOW_PRIORITY": "0",  # other tests would take all the time of a busy machine
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def end_of(lines: list[str]) -> list[str]:
    """What came after all suites' own output."""
    (at,) = (i for i, line in enumerate(lines) if line.startswith("== all suites: "))
    return lines[at + 1 :]


def test_all_that_passed_is_a_sum(tmp_path: Path) -> None:
    status, lines = run(tmp_path)
    assert (status, end_of(lines)) == (0, ["5 passed, 0 failed"])


def test_what_has_no_time_left_is_named(tmp_path: Path) -> None:
    status, lines = run(tmp_path, begin_until=0)
    assert (status, sorted(end_of(lines))) == (
        0,
        [
            "2 passed, 0 failed",
            *(
                f"{suite}: no time left for all of its tests"
                for suite in ("debug", "fuzz", "heavy", "test-aws-lc")
            ),
        ],
    )


def test_how_many_had_no_time_left_is_told(tmp_path: Path) -> None:
    status, lines = run(tmp_path, fuzz="echo 'SKIPPED [12] tests/leisure.py:25: no time left'")
    assert (status, end_of(lines)) == (
        0,
        ["fuzz: no time left for 12 of its tests", "5 passed, 0 failed"],
    )


def test_a_long_suite_ends_when_time_does(tmp_path: Path) -> None:
    status, lines = run(tmp_path, stop_after=8, pytest=AT_ONCE, fuzz="echo began; sleep 100")
    assert status == 0
    assert "fuzz: ended before all of its tests had run" in end_of(lines)
    assert "began" in lines


def test_a_long_suite_that_has_failed_when_time_ends_is_broken(tmp_path: Path) -> None:
    said = "ERROR: AddressSanitizer: heap-use-after-free"
    status, lines = run(tmp_path, stop_after=8, pytest=AT_ONCE, fuzz=f"echo '{said}'; sleep 100")
    assert status == 1
    assert said in lines


def test_a_suite_that_has_to_run_fails_when_time_ends(tmp_path: Path) -> None:
    status, lines = run(tmp_path, stop_after=8, pytest=AT_ONCE, conformance="echo began; sleep 100")
    assert status == 1
    assert "began" in lines
    # The signal may end the suite before the script notes that it is early.
    ends = [one for one in lines if one.startswith("== make test-conformance: ")]
    assert len(ends) == 1 and not ends[0].endswith("exit status 0")


@pytest.mark.parametrize(("until", "said"), [("0", "1 skipped"), ("4e9", "1 passed")])
def test_a_test_that_comes_too_late_is_skipped(until: str, said: str, tmp_path: Path) -> None:
    shutil.copy(LEISURE, tmp_path / "conftest.py")
    (tmp_path / "test_good.py").write_text(GOOD)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "--rootdir", ".", f"--begin-until={until}"],
        cwd=tmp_path,
        env={**os.environ, **BARE},
        capture_output=True,
        text=True,
    )
    assert said in done.stdout
    late = re.findall(r"^SKIPPED \[(\d+)\] .*: no time left$", done.stdout, re.M)
    assert late == (["1"] if "skipped" in said else [])


def test_few_that_failed_run_again_alone_and_are_named(tmp_path: Path) -> None:
    status, lines = run(tmp_path, bad=CROWDED)
    assert (status, end_of(lines)) == (
        0,
        [
            "test: passed only alone: suite_bad.py::test_crowded",
            "test: a.py::crowded: this gateway served 1 tests before: a.py::one[x y]",
            "6 passed, 0 failed",
        ],
    )
    assert "== test, again and alone: suite_bad.py::test_crowded" in lines


def test_who_fails_alone_too_is_broken(tmp_path: Path) -> None:
    status, lines = run(tmp_path, bad=BAD)
    assert status == 1
    assert lines[-1] == "5 passed, 2 failed"
    assert not any("passed only alone" in line for line in lines)


@pytest.fixture(scope="module")
def end(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The end of a run with a few failures."""
    status, lines = run(tmp_path_factory.mktemp("failing"), worse=3, bad=BAD)
    assert status == 1
    return end_of(lines)


def test_every_failed_test_is_named_at_the_end(end: list[str]) -> None:
    assert end[-1] == "4 passed, 5 failed"
    names = end[end.index("== failed tests") + 1 : -1]
    assert [name.split(" - ")[0] for name in names] == [
        "debug: FAILED suite_worse.py::test_worse[0]",
        "debug: FAILED suite_worse.py::test_worse[1]",
        "debug: FAILED suite_worse.py::test_worse[2]",
        "test: ERROR suite_bad.py::test_never_run",
        "test: FAILED suite_bad.py::test_bad",
    ]


def test_the_end_of_each_report_is_shown(end: list[str]) -> None:
    debug = end.index("== debug: the end of its failure report")
    test = end.index("== test: the end of its failure report")
    assert end[test - 2] == "line 99", "what it printed last"
    assert len(end[debug + 1 : test]) == 60
    report = end[test + 1 : end.index("== failed tests")]
    assert "E   AssertionError: arithmetic" in report
    assert "E   OSError: no such device" in report


def test_the_end_is_bounded(tmp_path: Path) -> None:
    _, lines = run(
        tmp_path, worse=150, bad=BAD, conformance="seq 1000; false", fuzz="seq 1000; false"
    )
    end = end_of(lines)
    assert len(end) <= 201
    assert max(map(len, end)) <= 300
    assert end[-2:] == ["and 52 more", "4 passed, 152 failed"]
    conformance = end.index("== test-conformance: the end of its failure report")
    assert "1000" in end[conformance : conformance + 61], (
        "what is not pytest's: the end of its output"
    )


def test_a_broken_set_up_ends_it_with_its_report(tmp_path: Path) -> None:
    status, lines = run(tmp_path, setup="echo no compiler; false")
    assert status == 1
    assert "no compiler" in lines[lines.index("== setup: the end of its failure report") :]
