"""Manifests of every deployment mode and every option, reviewed as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.fleets.golden import CASES, HERE, render_case


@pytest.mark.pure
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    text = render_case(path)
    golden = path.with_name(path.name.replace(".in.yaml", ".out.yaml"))
    if request.config.getoption("--update-goldens"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.pure
def test_no_output_without_its_case() -> None:
    outputs = {path.name.removesuffix(".out.yaml") for path in (HERE / "cases").glob("*.out.yaml")}
    assert outputs == {path.name.removesuffix(".in.yaml") for path in CASES}
    assert len(CASES) >= 14
