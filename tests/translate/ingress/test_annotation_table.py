"""The page of annotations: each row has the effect of a usual value, and of one that edgefast does not serve."""

from __future__ import annotations

import json

import pytest

from edgefast.explain import read_request_spec, serve_translation
from edgefast.explain.explain import explain
from edgefast.translate.ingress.known import KNOWN
from edgefast.translate.ingress.values import PREFIX
from tests.translate.ingress.annotation_page import ROWS
from tests.translate.ingress.annotation_samples import OBJECTS, SAMPLES, UNSERVED
from tests.translate.ingress.answers import translate_documents

pytestmark = pytest.mark.pure

#: First words of a cell of edgefast.
_WORDS = ("served", "in part", "503", "a warning", "no effect")
#: First words of the cells of the others.
_OTHER_WORDS = ("yes", "in part", "wrong", "no", "other products only")


def word(cell: str, words: tuple[str, ...]) -> str:
    """Return the word that a cell begins with."""
    return next(one for one in words if cell == one or cell.startswith(f"{one}: "))


def effect(name: str, annotations: dict[str, str]) -> str:
    """Return "503" if the location is closed by an annotation, "a warning" if a problem names it, else ""."""
    documents = [OBJECTS, _ingress("web", "web", annotations)]
    if "canary" in annotations:
        documents.append(_ingress("primary", "other", {}))
    translation, refused = translate_documents("---\n".join(documents))
    assert not refused
    request = read_request_spec("GET", "https://web.test/", (), "192.0.2.1")
    found = explain(serve_translation(translation), request)
    if found.answers[0].status == 503:
        return "503"
    path = f"metadata.annotations[{PREFIX}{name}]"
    return "a warning" if any(one.path == path for one in translation.problems) else ""


def _ingress(name: str, service: str, annotations: dict[str, str]) -> str:
    marks = {PREFIX + key: value for key, value in annotations.items()}
    backend = f"{{service: {{name: {service}, port: {{number: 80}}}}}}"
    return (
        f"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  annotations: {json.dumps(marks)}\n"
        "spec:\n  ingressClassName: nginx\n  tls: [{hosts: [web.test], secretName: pair}]\n"
        f"  rules: [{{host: web.test, http: {{paths: [{{path: /, pathType: Prefix, backend: {backend}}}]}}}}]\n"
    )


def test_the_page_has_each_annotation_once_in_order() -> None:
    assert list(ROWS) == sorted(KNOWN)
    assert set(SAMPLES) == KNOWN
    for name, cells in ROWS.items():
        assert len(cells) == 3, name
        assert all(word(one, _OTHER_WORDS) for one in cells[1:]), name


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_column_of_edgefast_is_true(name: str) -> None:
    found, said = effect(name, SAMPLES[name]), word(ROWS[name][0], _WORDS)
    served = said in ("served", "in part", "no effect")
    assert found == ("" if served else said) or name in UNSERVED and found == "a warning"
    assert (said == "in part") == (name in UNSERVED)
    if name in UNSERVED:
        assert effect(name, UNSERVED[name])
