"""Every case of tests/api/cases: the problem lines of a file, and what was decoded beside."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.api.decode.decode import decode_config, decode_documents

pytestmark = pytest.mark.pure

CASES = sorted(Path(__file__).parent.glob("cases/*.in.*"))


def _decode(path: Path) -> str:
    name = path.name.replace(".in.", ".")
    if name.startswith("config-"):
        config, problems = decode_config(path.read_bytes(), name)
        ends = [f"= {config!r}"] if config else []
    else:
        decoded = decode_documents(path.read_bytes(), name)
        problems = decoded.problems
        ends = [f"= {one.source} {one.ref}" for one in decoded.objects]
    lines = [f"{one.severity}: {one.line()}" for one in problems]
    return "".join(f"{line}\n" for line in lines + ends)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.partition(".")[0])
def test_case(path: Path, pytestconfig: pytest.Config) -> None:
    golden = path.with_name(path.name.partition(".")[0] + ".out.txt")
    out = _decode(path)
    if pytestconfig.getoption("--update-goldens"):
        golden.write_text(out)
    assert out == golden.read_text()


def test_every_golden_has_its_case() -> None:
    cases = {path.name.partition(".")[0] for path in CASES}
    goldens = {path.name.removesuffix(".out.txt") for path in CASES[0].parent.glob("*.out.txt")}
    assert goldens == cases
