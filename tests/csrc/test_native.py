"""csrc on its own: the C unit tests under ASan and UBSan, with SIMD and with the scalar twins; every fuzz corpus replayed.

csrc/Makefile does the work. Workers of one pytest run share a build folder, so that nothing is compiled twice.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.native

CSRC = Path(__file__).parents[2] / "csrc"
# A sanitizer that this process runs under, and the make that started it, are not the ones meant here.
NOT_OURS = {"LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all workers of this run build in."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "csrc"
    folder.mkdir(exist_ok=True)
    return folder


def make(goal: str, build: Path) -> str:
    """Run make under the lock of the build folder; returns what it printed."""
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [
                "make",
                "--silent",
                "--keep-going",
                "--jobs=2",
                "OPTIMISE=-O0",
                f"BUILD={build}",
                goal,
            ],
            cwd=CSRC,
            env={name: value for name, value in os.environ.items() if name not in NOT_OURS},
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_unit_tests(build: Path) -> None:
    out = make("test", build)
    reports = re.findall(r"^tests/(test_\w+)\.c: (\d+) checks, 0 failed$", out, re.M)
    sources = sorted(path.stem for path in CSRC.glob("tests/test_*.c"))
    assert sources
    assert sorted(name for name, _ in reports) == sorted(sources * 2), out  # SIMD and scalar
    assert all(int(checks) > 0 for _, checks in reports)


def test_corpora(build: Path) -> None:
    out = make("replay", build)
    inputs = dict(re.findall(r"/replay/(\w+): (\d+) inputs$", out, re.M))
    targets = sorted(path.stem.removeprefix("fuzz_") for path in CSRC.glob("fuzz/fuzz_*.c"))
    assert targets
    assert sorted(inputs) == targets, out
    for target in targets:
        seeds = sum(1 for path in (CSRC / "fuzz/corpus" / target).iterdir())
        assert int(inputs[target]) > seeds > 0
