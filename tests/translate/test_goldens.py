"""Golden cases: objects in, IR, statuses and problems out, reviewed as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.translate import translate
from tests.translate.golden import HERE, read_input, render

CASES = sorted((HERE / "cases").glob("*.in.yaml"))


@pytest.mark.pure
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    found = read_input(path)
    text = render(found, translate(found.snapshot, found.case.settings))
    golden = path.with_name(path.name.replace(".in.yaml", ".out.yaml"))
    if request.config.getoption("--update-goldens"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.pure
def test_no_output_without_its_case() -> None:
    outputs = {path.name.removesuffix(".out.yaml") for path in (HERE / "cases").glob("*.out.yaml")}
    assert outputs == {path.name.removesuffix(".in.yaml") for path in CASES}
    assert len(CASES) >= 50
