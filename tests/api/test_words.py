"""Lists of what is supported: no word and no field in them is refused by translation."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.decode.decode import decode_documents
from edgefast.api.kinds import KINDS
from edgefast.api.model.shape import Shape, shape_of
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, translate

pytestmark = pytest.mark.pure

HEAD = """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec: {gatewayClassName: edge, listeners: [{name: http, port: 8080, protocol: HTTP}]}
---
"""
ROUTE = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: edge}]
  rules:
  - matches: [MATCH]
    filters: [{type: RequestRedirect, requestRedirect: {statusCode: 301}}]
"""


def _message(text: str) -> str:
    decoded = decode_documents((HEAD + text).encode(), "a.yaml")
    translation = translate(Snapshot.of(decoded.objects), Settings())
    return "\n".join(one.text() for one in (*decoded.problems, *translation.problems))


def _listed(said: str) -> list[str]:
    return said.partition("(supported: ")[2].partition(")")[0].split(", ")


def test_every_method_that_is_listed_is_served() -> None:
    methods = _listed(_message(ROUTE.replace("MATCH", "{method: GETT}")))
    assert {"GET", "PATCH"} <= set(methods)
    for method in methods:
        assert _message(ROUTE.replace("MATCH", f"{{method: {method}}}")) == "", method
    for method in ("CONNECT", "TRACE"):
        assert method not in methods
        assert "405" in _message(ROUTE.replace("MATCH", f"{{method: {method}}}"))


def test_no_filter_that_is_listed_is_unavailable() -> None:
    wrong = ROUTE.replace("MATCH", "{}").replace("type: RequestRedirect", "type: Redirect")
    types = _listed(_message(wrong))
    assert "RequestRedirect" in types
    for word in types:
        assert "not available" not in _message(wrong.replace("type: Redirect", f"type: {word}"))


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        (ROUTE.replace("MATCH", "{}").replace("parentRefs", "parentRef"), "useDefaultGateways"),
        (HEAD.replace("gatewayClassName", "gatewayClass").rstrip("-\n"), "defaultScope"),
        (HEAD.replace("protocol: HTTP}", 'protocol: "HTTP/1"}'), "another"),
    ],
)
def test_no_list_has_what_is_refused(text: str, absent: str) -> None:
    said = _message(text)
    assert "supported: " in said or "expected " in said
    assert absent not in said


def _shapes(shape: Shape) -> list[Shape]:
    below = [one.shape for one in shape.fields]
    below += [one for one in (shape.item, *shape.choices) if one is not None]
    return [shape, *(inner for one in below for inner in _shapes(one))]


def test_words_are_those_of_the_api_but_the_refused() -> None:
    refused: dict[str, Any] = {}
    for info in KINDS.values():
        for shape in _shapes(shape_of(info.struct)):
            assert set(shape.words) <= set(shape.enum)
            gone = [one for one in shape.enum if isinstance(one, str) and one not in shape.words]
            refused.update(dict.fromkeys(gone))
    assert sorted(refused) == ["CONNECT", "MCP", "TRACE"]
