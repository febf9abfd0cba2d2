"""Ingress and IngressClass: what a document becomes, and what is left of one with a mistake."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from edgefast.api.decode.decode import decode_documents
from edgefast.api.ingress.ingress import CLASS_ANNOTATION, Ingress
from edgefast.api.snapshot import Snapshot

pytestmark = pytest.mark.pure

BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def document(**spec: Any) -> bytes:
    meta = {"name": "web", "annotations": {CLASS_ANNOTATION: "nginx", "a/b": "c"}}
    value = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta}
    return yaml.safe_dump({**value, "spec": spec}).encode()


def paths(*given: dict[str, Any], host: Any = "a.test") -> list[dict[str, Any]]:
    return [{"host": host, "http": {"paths": list(given)}}]


def test_an_ingress_is_indexed_and_a_missing_path_type_has_its_default() -> None:
    read = decode_documents(document(rules=paths({"path": "/a", "backend": BACKEND})), "a.yaml")
    assert read.problems == ()
    found = Snapshot.of(read.objects).ingresses["default", "web"]
    assert found.spec.rules[0].http is not None
    assert found.spec.rules[0].http.paths[0].path_type == "ImplementationSpecific"
    assert found.closed is None


@pytest.mark.parametrize(
    ("spec", "path", "reason"),
    [
        ({}, "spec.rules", "Required"),
        ({"rules": [{"host": "A.test"}]}, "spec.rules[0].host", "Invalid"),
        ({"rules": [{"host": "a.*.test"}]}, "spec.rules[0].host", "Invalid"),
        ({"defaultBackend": {}}, "spec.defaultBackend.service", "Required"),
        (
            {"rules": paths({"path": "a", "backend": BACKEND})},
            "spec.rules[0].http.paths[0].path",
            "Invalid",
        ),
        (
            {"rules": paths({"path": "/a//b", "pathType": "Exact", "backend": BACKEND})},
            "spec.rules[0].http.paths[0].path",
            "Invalid",
        ),
        (
            {"rules": paths({"pathType": "Prefix", "backend": BACKEND})},
            "spec.rules[0].http.paths[0].path",
            "Required",
        ),
        (
            {"rules": paths({"backend": {"service": {"name": "web"}}})},
            "spec.rules[0].http.paths[0].backend.service.port",
            "Required",
        ),
        ({"rules": paths({"backend": BACKEND}), "tsl": []}, "spec.tsl", "Invalid"),
    ],
)
def test_mistakes_have_their_field_and_leave_a_closed_ingress(
    spec: dict[str, Any], path: str, reason: str
) -> None:
    read = decode_documents(document(**spec), "a.yaml")
    assert path in [one.path for one in read.problems]
    assert all(one.severity == "error" for one in read.problems)
    (refused,) = read.refused
    assert refused.closed is not None
    closed = refused.closed.obj
    assert isinstance(closed, Ingress) and closed.closed is not None
    assert closed.metadata.annotations == {CLASS_ANNOTATION: "nginx"}
    assert reason


def test_of_a_closed_ingress_the_paths_that_can_be_read_stay() -> None:
    given = paths(
        {"path": "/admin", "pathType": "Exakt", "backend": 7},
        {"path": 9, "backend": BACKEND},
        {"path": "/b", "pathType": "Exact", "backend": {"service": {}}},
    )
    read = decode_documents(document(rules=given + paths({"path": "/x"}, host=7)), "a.yaml")
    assert read.refused[0].closed is not None
    closed = read.refused[0].closed.obj
    assert isinstance(closed, Ingress)
    (rule,) = closed.spec.rules
    assert rule.host == "a.test" and rule.http is not None
    found = [(one.path, one.path_type) for one in rule.http.paths]
    assert found == [("/admin", "Prefix"), ("/", "Prefix"), ("/b", "Exact")]
    assert all(one.backend.service is None for one in rule.http.paths)


@pytest.mark.parametrize("field", ["rules", "host", "http", "paths"])
def test_a_misspelled_field_of_a_closed_ingress_counts_as_the_one_its_message_suggests(
    field: str,
) -> None:
    given = document(rules=paths({"path": "/a", "pathType": "Exact", "backend": BACKEND}))
    text = given.replace(f"{field}:".encode(), f"{field}x:".encode())
    assert text != given
    (refused,) = decode_documents(text, "a.yaml").refused
    assert refused.closed is not None
    closed = refused.closed.obj
    assert isinstance(closed, Ingress)
    (rule,) = closed.spec.rules
    assert rule.host == "a.test" and rule.http is not None
    assert [(one.path, one.path_type) for one in rule.http.paths] == [("/a", "Exact")]


def test_no_document_sets_the_origin_of_a_route() -> None:
    text = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
origin: {ingress: null}
spec: {}
"""
    read = decode_documents(text.encode(), "a.yaml")
    assert [one.path for one in read.problems] == ["origin"]
