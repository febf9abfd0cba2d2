"""GRPCRoutes: what their matches become, who comes first, and who of a GRPCRoute and an HTTPRoute has a host."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from edgefast import ir
from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, Translation, translate
from tests.support.documents import backend
from tests.support.manifest import manifest
from tests.translate.gateway_text import gateway

pytestmark = pytest.mark.pure

BASE = (
    gateway("name: http, port: 80, protocol: HTTP", "name: other, port: 81, protocol: HTTP")
    + backend("web")
    + """---
apiVersion: gateway.edge.io/v1alpha1
kind: RateLimitFilter
metadata: {name: limits}
spec: {type: Global, global: {rules: [{limit: {requests: 1, unit: Hour}}]}}
"""
)
SETTINGS = Settings(standalone=True)
BACKEND = {"name": "web", "port": 80}


def route(
    kind: str, name: str, *rules: dict[str, Any], age: int = 0, section: str = "", **spec: Any
) -> dict[str, Any]:
    """A route; `age` is the day of 2026-01 that it was made on, 0 none."""
    meta: dict[str, Any] = {"name": name, "namespace": "default"}
    if age:
        meta["creationTimestamp"] = f"2026-01-{age:02}T00:00:00Z"
    parent = {"name": "gw", "sectionName": section} if section else {"name": "gw"}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": meta,
        "spec": {"parentRefs": [parent], "rules": list(rules), **spec},
    }


def rule(*matches: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A rule with the one backend there is."""
    return {"backendRefs": [BACKEND], **({"matches": list(matches)} if matches else {}), **more}


def call(service: str = "", method: str = "", kind: str = "", **more: Any) -> dict[str, Any]:
    """A match of a method."""
    wanted = {"service": service, "method": method, "type": kind}
    return {"method": {name: value for name, value in wanted.items() if value}, **more}


def snapshot(*objects: dict[str, Any]) -> Snapshot:
    """The base and these objects; all of them are sound, or their places are kept."""
    text = BASE + "".join(f"\n---\n{yaml.safe_dump(one)}" for one in objects)
    found = decode_documents(text.encode(), "world.yaml")
    closed = [one.closed for one in found.refused if one.closed is not None]
    return Snapshot.of([*found.objects, *closed])


def serve(*objects: dict[str, Any], previous: Translation | None = None) -> Translation:
    return translate(snapshot(*objects), SETTINGS, previous)


def hosts(served: Translation, section: str = "http") -> dict[str, ir.VirtualHost]:
    """The virtual hosts of a listener."""
    (fleet,) = served.ir.fleets
    return {
        one.hostname: one for one in fleet.virtual_hosts if one.listener == f"default/gw/{section}"
    }


def accepted(served: Translation, kind: str, name: str) -> tuple[str, str]:
    """Status and reason of Accepted at the only parent."""
    table = served.statuses.grpc_routes if kind == "GRPCRoute" else served.statuses.http_routes
    (parent,) = table["default", name].parents
    (found,) = (one for one in parent.conditions if one.type == "Accepted")
    return found.status, found.reason


@pytest.mark.parametrize(
    ("match", "kind", "path"),
    [
        (call("a.B", "C"), "exact", "/a.B/C"),
        (call("a.B"), "prefix", "/a.B"),
        (call(method="C"), "regex", "/[^/]+/C"),
        (call("a[.]B", kind="RegularExpression"), "regex", "/(?:a[.]B)/[^/]+"),
        (call("a|b", "C|D", "RegularExpression"), "regex", "/(?:a|b)/(?:C|D)"),
        (call(method="(?i)get.*", kind="RegularExpression"), "regex", "/[^/]+/(?:(?i)get.*)"),
        ({"headers": [{"name": "X-A", "value": "b"}]}, "prefix", ""),
        ({}, "prefix", ""),
    ],
)
def test_matches(match: dict[str, Any], kind: str, path: str) -> None:
    served = serve(route("GRPCRoute", "a", rule(match)))
    (entry,) = hosts(served)["*"].entries
    assert (entry.match.kind, entry.match.path, entry.match.method) == (kind, path, "POST")
    names = [(one.name, one.value) for one in entry.match.headers]
    assert names == ([("x-a", "b")] if "headers" in match else [])
    assert not served.problems


def test_a_rule_without_matches_takes_every_call_and_without_rules_there_are_none() -> None:
    (entry,) = hosts(serve(route("GRPCRoute", "a", rule())))["*"].entries
    assert (entry.match.kind, entry.match.path) == ("prefix", "")
    assert serve(route("GRPCRoute", "a")).statuses.grpc_routes["default", "a"].parents
    assert (
        hosts(serve(route("GRPCRoute", "a"))).get("*") is None
        or not hosts(serve(route("GRPCRoute", "a")))["*"].entries
    )


def test_what_a_rule_becomes() -> None:
    modify = {"set": [{"name": "x", "value": "1"}]}
    extension = {"group": "gateway.edge.io", "kind": "RateLimitFilter", "name": "limits"}
    filters = [
        {"type": "RequestHeaderModifier", "requestHeaderModifier": modify},
        {"type": "ResponseHeaderModifier", "responseHeaderModifier": modify},
        {"type": "RequestMirror", "requestMirror": {"backendRef": BACKEND}},
        {"type": "ExtensionRef", "extensionRef": extension},
    ]
    refs = [{**BACKEND, "weight": 3, "filters": filters[:1]}, {**BACKEND, "weight": 1}]
    made = route("GRPCRoute", "a", {"name": "one", "filters": filters, "backendRefs": refs})
    served = serve(made)
    assert not served.problems
    (one,) = hosts(served)["*"].rules
    assert (one.route, one.name, one.index) == ("grpcroute/default/a", "one", 0)
    assert [share.weight for share in one.backends] == [3, 1]
    assert one.backends[0].request_headers and one.request_headers and one.response_headers
    assert one.timeouts == ir.Timeouts(request=0)
    (limit,) = one.rate_limits
    assert limit.counter.startswith("19:grpcroute/default/a")
    (fleet,) = served.ir.fleets
    clusters = {one.name: one for one in fleet.clusters}
    assert {share.cluster for share in one.backends} == set(clusters)
    assert {cluster.protocol for cluster in clusters.values()} == {"h2"}
    assert one.mirrors[0].cluster in clusters


def test_a_filter_that_is_for_httproutes_alone_is_refused() -> None:
    extension = {"group": "gateway.edge.io", "kind": "HTTPRouteFilter", "name": "page"}
    filters = [{"type": "ExtensionRef", "extensionRef": extension}]
    served = serve(route("GRPCRoute", "a", {"filters": filters, "backendRefs": [BACKEND]}))
    (one,) = hosts(served)["*"].rules
    assert one.status == 500
    assert (
        "HTTPRouteFilter in a route other than HTTPRoute (supported: RateLimitFilter)" in one.reason
    )


def test_precedence_is_by_the_service_then_the_method_then_headers() -> None:
    header = [{"name": "x", "value": "y"}]
    matches = [
        {},
        call(method="LongNameOfAMethod"),
        call(method="C"),
        call("a.B"),
        call("a.B", headers=header),
        call("a.B", "C"),
        call("a.B", "C", headers=header),
        call("a[.]B", kind="RegularExpression"),
        call("a[.]Bx*", kind="RegularExpression"),
    ]
    rules = [rule(one, name=f"r{at}") for at, one in enumerate(matches)]
    host = hosts(serve(route("GRPCRoute", "a", *rules)))["*"]
    names = [host.rules[one.rule].name for one in host.entries]
    assert names == ["r6", "r5", "r8", "r7", "r4", "r3", "r1", "r2", "r0"]


def test_services_are_found_by_hash_where_no_method_stands_alone() -> None:
    host = hosts(serve(route("GRPCRoute", "a", rule(call("a.B")), rule(call("a.C")))))["*"]
    assert {one.match.kind for one in host.entries} == {"prefix"}


def test_two_kinds_of_one_name_stand_beside_each_other() -> None:
    served = serve(
        route("GRPCRoute", "a", rule(), hostnames=["grpc.test"]),
        route("HTTPRoute", "a", rule(), hostnames=["web.test"]),
    )
    assert not served.problems
    found = hosts(served)
    assert [one.rules[0].route for one in found.values()] == ["grpcroute/default/a", "default/a"]
    for kind in ("GRPCRoute", "HTTPRoute"):
        assert accepted(served, kind, "a") == ("True", "Accepted")
    (gateway,) = served.statuses.gateways.values()
    assert [one.attached_routes for one in gateway.listeners] == [2, 2]
    kinds = [one.kind for one in gateway.listeners[0].supported_kinds]
    assert kinds == ["HTTPRoute", "GRPCRoute"]


REFUSED = ("False", "NotAllowedByListeners")


@pytest.mark.parametrize(
    ("grpc", "http", "winner"),
    [
        ({"age": 1}, {"age": 2}, "GRPCRoute"),
        ({"age": 2}, {"age": 1}, "HTTPRoute"),
        ({"age": 2, "hostnames": ["a.test"]}, {"age": 1, "hostnames": ["*.test"]}, "HTTPRoute"),
        ({"age": 2, "hostnames": ["a.test"]}, {"age": 1}, "HTTPRoute"),
        ({"age": 2, "hostnames": ["a.test"]}, {"age": 1, "hostnames": ["b.test"]}, ""),
        ({"age": 2, "section": "other"}, {"age": 1, "section": "http"}, ""),
    ],
)
def test_of_two_kinds_with_a_host_in_common_the_older_has_it(
    grpc: dict[str, Any], http: dict[str, Any], winner: str
) -> None:
    objects = route("GRPCRoute", "g", rule(), **grpc), route("HTTPRoute", "h", rule(), **http)
    for order in (objects, objects[::-1]):
        served = serve(*order)
        states = {"GRPCRoute": accepted(served, "GRPCRoute", "g")}
        states["HTTPRoute"] = accepted(served, "HTTPRoute", "h")
        for kind, state in states.items():
            assert state == (("True", "Accepted") if winner in ("", kind) else REFUSED)
        kinds = {
            one.rules[0].route for at in ("http", "other") for one in hosts(served, at).values()
        }
        both = {"GRPCRoute": "grpcroute/default/g", "HTTPRoute": "default/h"}
        assert kinds == ({both[winner]} if winner else set(both.values()))
        (gateway,) = served.statuses.gateways.values()
        assert sum(one.attached_routes for one in gateway.listeners) == (
            2 if winner else 2 if "section" in grpc else 4
        )


def test_who_comes_next_when_the_winner_goes() -> None:
    """Whatever came before, the outcome is that of a translation from nothing."""
    first = route("HTTPRoute", "h", rule(), age=1, hostnames=["*.test"])
    second = route("GRPCRoute", "g", rule(), age=2, hostnames=["a.test"])
    third = route("HTTPRoute", "i", rule(), age=3, hostnames=["a.test"])
    steps = [
        (second,),
        (second, third),
        (first, second, third),
        (first, second),
        (second, third),
        (third,),
        (first, second, third),
        (),
        (second, third),
    ]
    before = None
    for objects in steps:
        served = serve(*objects, previous=before)
        fresh = serve(*objects)
        assert served.ir == fresh.ir
        assert served.statuses == fresh.statuses
        assert served.problems == fresh.problems
        before = served


@pytest.mark.parametrize(
    ("match", "kind", "path"),
    [
        ({"method": {"service": "a/B", "method": "C"}}, "regex", "/[^/]+/C"),
        ({"method": {"service": "a.B", "method": "C D"}}, "prefix", "/a.B"),
        ({"method": {"service": "a.B", "type": "Prefix"}}, "regex", ".*"),
        ({"method": {"servce": "a.B"}}, "prefix", "/a.B"),
        ({"method": {"strange": "a.B"}}, "regex", "/[^/]+/[^/]+"),
        ({"service": "a.B"}, "regex", "/[^/]+/[^/]+"),
        ({"method": {}}, "prefix", ""),
        ({"methods": {"service": "a.B"}}, "prefix", "/a.B"),
        ({"method": "a.B/C"}, "regex", "/[^/]+/[^/]+"),
    ],
)
def test_a_mistake_keeps_its_place_closed(match: dict[str, Any], kind: str, path: str) -> None:
    served = serve(route("GRPCRoute", "a", rule(match)))
    host = hosts(served)["*"]
    (entry,) = host.entries
    assert (entry.match.kind, entry.match.path) == (kind, path)
    assert host.rules[entry.rule].status == 500
    assert accepted(served, "GRPCRoute", "a")[0] == "False"


def test_an_expression_that_is_not_re2_costs_its_rule() -> None:
    wrong = rule(call("shop(?=x)", kind="RegularExpression"))
    served = serve(route("GRPCRoute", "a", wrong, rule(call("a.B"))))
    host = hosts(served)["*"]
    assert [one.status for one in host.rules] == [500, 0]
    assert host.entries[0].match.path == "/shop[^/]*/[^/]+"
    assert accepted(served, "GRPCRoute", "a") == ("True", "Accepted")


def test_rules_that_never_see_a_call() -> None:
    served = serve(
        route("GRPCRoute", "a", rule(call("a.B")), age=1),
        route("GRPCRoute", "b", rule(call("a.B")), age=2),
    )
    said = [one.line() for one in served.problems]
    assert any("GRPCRoute default/b" in one and "GRPCRoute default/a does" in one for one in said)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("http", "ResolvedRefs"),
        ("grpc", "ResolvedRefs"),
        ("kubernetes.io/h2c", "ResolvedRefs"),
        ("https", "UnsupportedProtocol"),  # without a BackendTLSPolicy
        ("kubernetes.io/ws", "UnsupportedProtocol"),
        ("kubernetes.io/wss", "UnsupportedProtocol"),
    ],
)
def test_what_a_port_may_say(asked: str, reason: str) -> None:
    ports = [{"port": 80, "appProtocol": asked}]
    service = manifest("Service said", {"ports": ports})
    served = serve(
        service, route("GRPCRoute", "a", rule(backendRefs=[{"name": "said", "port": 80}]))
    )
    (parent,) = served.statuses.grpc_routes["default", "a"].parents
    (resolved,) = (one for one in parent.conditions if one.type == "ResolvedRefs")
    assert resolved.reason == reason
    assert hosts(served)["*"].rules[0].status == (0 if reason == "ResolvedRefs" else 500)


def test_grants_name_the_kind() -> None:
    far = {"backendRefs": [{"name": "far", "namespace": "other", "port": 80}]}
    service = manifest("Service other/far", {"ports": [{"port": 80}]})
    grant = manifest(
        "ReferenceGrant other/g",
        {"to": [{"group": "", "kind": "Service"}]},
        api="gateway.networking.k8s.io/v1beta1",
    )
    for kind, expected in (("HTTPRoute", 500), ("GRPCRoute", 0)):
        grant["spec"]["from"] = [  # type: ignore[index]
            {"group": "gateway.networking.k8s.io", "kind": kind, "namespace": "default"}
        ]
        served = serve(route("GRPCRoute", "a", far), service, grant)
        assert hosts(served)["*"].rules[0].status == expected
