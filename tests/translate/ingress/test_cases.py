"""Golden cases of Ingresses: objects and requests in, answers and problems out, reviewed as text.

`pytest tests/translate/ingress --update-goldens` rewrites the outputs; the diff is then the review.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.explain import read_request_spec, serve_translation
from edgefast.explain.explain import explain
from tests.translate.ingress.answers import HERE, render, translate_documents

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
def test_an_explanation_has_the_reason_of_a_closed_location() -> None:
    text = (HERE / "cases" / "auth-url.in.yaml").read_text().partition("\n---\n")[2]
    served = serve_translation(translate_documents(text)[0])
    request = read_request_spec("GET", "http://arg.test/", (), "192.0.2.1")
    (answer,) = explain(served, request).answers
    assert answer.status == 503 and answer.why.startswith("variable $arg_token is not served")


@pytest.mark.pure
def test_no_output_without_its_case() -> None:
    outputs = {path.name.removesuffix(".out.yaml") for path in (HERE / "cases").glob("*.out.yaml")}
    assert outputs == {path.name.removesuffix(".in.yaml") for path in CASES}
