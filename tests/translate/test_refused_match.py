"""A match that is refused: whatever it may have been for is answered 500, and no rule behind it gets any of that."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.api.snapshot import Snapshot
from edgefast.explain.explain import explain
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import serve_translation
from edgefast.translate import Settings, translate
from tests.support.manifest import manifest

pytestmark = pytest.mark.pure

API = "gateway.networking.k8s.io/v1"
OBJECTS: list[dict[str, Any]] = [
    manifest("GatewayClass edge", {"controllerName": "gateway.edge.io/gatewayclass-controller"}),
    manifest(
        "Gateway default/gw",
        {
            "gatewayClassName": "edge",
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    ),
]


def _route(name: str, rules: list[dict[str, Any]], age: str = "", **spec: Any) -> dict[str, Any]:
    """Return a route whose sound rules redirect to its name."""
    away = {"type": "RequestRedirect", "requestRedirect": {"hostname": f"{name}.example"}}
    return manifest(
        f"HTTPRoute default/{name}",
        {
            "parentRefs": [{"name": "gw"}],
            "rules": [{**one, "filters": [away]} for one in rules],
            **spec,
        },
        creationTimestamp=age or None,
    )


def _regex(value: str, **more: Any) -> dict[str, Any]:
    return {"path": {"type": "RegularExpression", "value": value}, **more}


def _prefix(*values: str) -> list[dict[str, Any]]:
    return [{"matches": [{"path": {"type": "PathPrefix", "value": value}}]} for value in values]


def _ask(routes: list[dict[str, Any]], request: str) -> str:
    """Return who answers "METHOD host/path name:value": the name of a route, or "500"."""
    objects = [decode_api_object(one, one["kind"]) for one in (*OBJECTS, *routes)]
    served = serve_translation(translate(Snapshot.of(objects), Settings(standalone=True)))
    method, url, *headers = request.split(" ")
    host, _, path = url.partition("/")
    fields = tuple((one.partition(":")[0], one.partition(":")[2]) for one in headers)
    asked = RequestSpec(
        scheme="http", method=method, host=host, port=80, target=f"/{path}", headers=fields
    )
    (found,) = explain(served, asked).answers
    return (
        str(found.status) if found.kind == "status" else found.location.split("/")[2].split(".")[0]
    )


#: Older than the route with the refused match, and so before it wherever all else is equal.
OLD = "2020-01-01T00:00:00Z"
OTHERS = [
    _route("wide", _prefix("/", "/shop", "/admin", "/admin/reports"), OLD),
    _route("exact", [{"matches": [{"path": {"type": "Exact", "value": "/admin/exact"}}]}], OLD),
]


@pytest.mark.parametrize(
    ("match", "closed", "served"),
    [
        # Nothing tells its paths apart: all of them, but for exact ones, which come before any expression.
        (_regex("/(?!public).*"), "GET a/x,GET a/shop/x,GET a/admin/reports", "GET a/admin/exact"),
        (_regex("/(shop|admin)/x(?=y).*"), "GET a/shop/xy,GET a/admin/xy", ""),
        # The literal beginning does: within a segment, below other rules' longer prefixes.
        (_regex("/admin/(?!public).*"), "GET a/admin/x,GET a/admin/reports/1", "GET a/shop,GET a/admin"),
        (_regex("/adm[i](?!x)n"), "GET a/admin,GET a/admin/reports", "GET a/shop"),
        (_regex("/sho.(?!x)"), "GET a/shop", "GET a/admin"),
        # So do the other conditions of the match.
        (_regex("(?!x).*", method="POST"), "POST a/shop", "GET a/shop"),
        (_regex("(?!x)", headers=[{"name": "x-a", "value": "1"}]), "GET a/ x-a:1", "GET a/ x-a:2,GET a/"),
        (
            {"headers": [{"name": "x-a", "type": "RegularExpression", "value": "(?!x)"}]},
            "GET a/ x-a:1",
            "GET a/,GET a/shop x-a:1",
        ),
        (
            {"queryParams": [{"name": "q", "type": "RegularExpression", "value": "("}]},
            "GET a/?q=1",
            "GET a/?p=1",
        ),
        ({"path": {"type": "PathPrefix", "value": "/shop/../admin"}}, "GET a/x", "GET a/shop"),
        ({"path": {"type": "Exact", "value": "/shop//x"}}, "GET a/shop,GET a/shop/x", "GET a/admin"),
        ({"path": {"type": "Glob", "value": "/a*"}}, "GET a/shop,GET a/", "GET a/admin/exact"),
    ],
    ids=str,
)  # fmt: skip
def test_what_it_may_have_been_for_is_closed(
    match: dict[str, Any], closed: str, served: str
) -> None:
    broken = _route("broken", [{"matches": [match]}])
    routes = [*OTHERS, broken]
    assert {one: _ask(routes, one) for one in closed.split(",")} == dict.fromkeys(
        closed.split(","), "500"
    )
    for one in filter(None, served.split(",")):
        assert _ask(routes, one) in ("wide", "exact"), one
    # Hostnames of others are not touched.
    elsewhere = _route("broken", [{"matches": [match]}], hostnames=["b"])
    assert _ask([*OTHERS, elsewhere], closed.split(",")[0]) == "wide"


def test_it_keeps_its_place_among_expressions() -> None:
    """A longer expression of somebody else would have come first, a shorter or equal one not."""
    broken = _route("broken", [{"matches": [_regex("/a/(?!x)..*")]}])
    for other, answer in (
        ("/a/b[0-9]{1,2}(c|d)?", "other"),
        ("/a/b[0-9]", "500"),
        ("/a/b1(c|d)", "500"),
    ):
        routes = [*OTHERS, broken, _route("other", [{"matches": [_regex(other)]}], OLD)]
        assert _ask(routes, "GET a/a/b1" + ("c" if "d" in other else "")) == answer, other


def test_other_matches_of_the_rule_and_other_rules_of_the_route() -> None:
    """All of the rule answers 500; its siblings are served where they come before it."""
    rules = [
        {"matches": [_regex("/a/(?!x)"), *(one["matches"][0] for one in _prefix("/b"))]},
        *_prefix("/c", "/a"),
    ]
    routes = [*OTHERS, _route("broken", rules)]
    answers = {path: _ask(routes, f"GET h{path}") for path in ("/a/y", "/b", "/c", "/a")}
    assert answers == {"/a/y": "500", "/b": "500", "/c": "broken", "/a": "broken"}
