"""Golden cases of Ingresses: objects and requests in, answers and problems out, reviewed as text.

`pytest tests/translate/ingress --update-goldens` rewrites the outputs; the diff is then the review.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.translate.ingress.answers import HERE, render

CASES = sorted((HERE / "cases").glob("*.in.yaml"))


@pytest.mark.pure
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    text = render(path)
    golden = path.with_name(path.name.replace(".in.yaml", ".out.yaml"))
    if request.config.getoption("--update-goldens"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.pure
def test_no_output_without_its_case() -> None:
    outputs = {path.name.removesuffix(".out.yaml") for path in (HERE / "cases").glob("*.out.yaml")}
    assert outputs == {path.name.removesuffix(".in.yaml") for path in CASES}
