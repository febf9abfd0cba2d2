"""Routes of layer 4 over time: only what read a change is made anew, and a place with a mistake goes to nobody else."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from edgefast import ir
from edgefast.api.decode.decode import decode_documents
from edgefast.api.decode.duplicate import close_duplicate
from edgefast.api.snapshot import Snapshot
from edgefast.table import compile_fleet
from edgefast.table.shards import diff
from edgefast.translate import Settings, Translation, translate
from tests.translate.gateway_text import gateway

pytestmark = pytest.mark.pure

_SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {ports: [{name: pg, port: 5432}, {port: 53, protocol: UDP, name: dns}]}
---
"""
_HEAD = (
    gateway(
        "name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}",
        "name: tcp, port: 90, protocol: TCP",
        "name: udp, port: 90, protocol: UDP",
    )
    + _SERVICE
)
_SLICE = """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [ADDRESS]}]
ports: [{name: pg, port: 5432}, {name: dns, port: 53, protocol: UDP}]
---
"""


def route(kind: str, name: str, *, created: str = "", hosts: str = "", ref: str = "") -> str:
    """Return a route; `ref` in place of its one backendRef."""
    section = kind.removesuffix("Route").lower()
    names = f"  hostnames: [{hosts}]\n" if hosts else ""
    stamp = f', creationTimestamp: "{created}"' if created else ""
    port = 53 if kind == "UDPRoute" else 5432
    backend = ref or f"{{name: db, port: {port}}}"
    return (
        "apiVersion: gateway.networking.k8s.io/v1\n"
        f"kind: {kind}\nmetadata: {{name: {name}{stamp}}}\nspec:\n"
        f"  parentRefs: [{{name: gw, sectionName: {section}}}]\n{names}"
        f"  rules: [{{backendRefs: [{backend}]}}]\n---\n"
    )


def load(*texts: str, address: str = "10.0.0.1") -> Snapshot:
    text = _HEAD + _SLICE.replace("ADDRESS", address) + "".join(texts)
    decoded = decode_documents(text.encode(), "a.yaml")
    closed = [one.closed for one in decoded.refused if one.closed is not None]
    return Snapshot.of([*decoded.objects, *closed])


def serve(snapshot: Snapshot, before: Translation | None = None) -> Translation:
    return translate(snapshot, Settings(), before)


def places(one: Translation) -> dict[str, ir.StreamRoute]:
    (fleet,) = one.ir.fleets
    return {f"{it.listener}/{it.hostname}": it for it in fleet.stream_routes}


def winners(one: Translation) -> dict[str, str]:
    return {place: found.route for place, found in places(one).items()}


def mistakes(one: Translation) -> Iterable[str]:
    return [found.line() for found in one.problems if found.severity == "error"]


def test_a_rollout_touches_no_route() -> None:
    texts = [route("TCPRoute", "a"), route("UDPRoute", "b"), route("TLSRoute", "c", hosts="c.test")]
    before = load(*texts)
    first = serve(before)
    assert not mistakes(first)
    again = Snapshot.of(load(*texts, address="10.0.0.2").loaded.values(), before)
    second = serve(again, first)
    assert (second.work.routes, second.work.streams) == (0, 0)
    delta = diff(compile_fleet(first.ir.fleets[0]), compile_fleet(second.ir.fleets[0]))
    assert {put.type for put in delta.put} == {"cluster"}


def test_only_the_changed_route_and_its_places_are_made_anew() -> None:
    texts = [route("TLSRoute", f"r{at}", hosts=f"h{at}.test") for at in range(20)]
    snapshot = load(*texts)
    first = serve(snapshot)
    (item,) = decode_documents(
        route("TLSRoute", "r7", hosts="other.test").encode(), "a.yaml"
    ).objects
    second = serve(snapshot.replace([item]), first)
    assert (second.work.routes, second.work.streams) == (1, 2)
    assert places(second) == places(serve(snapshot.replace([item])))
    kept = places(first)["default/gw/tls/h3.test"]
    assert places(second)["default/gw/tls/h3.test"] is kept


def test_the_next_oldest_has_the_place_when_the_oldest_is_gone() -> None:
    old = route("TCPRoute", "old", created="2026-01-01T00:00:00Z")
    new = route("TCPRoute", "new", created="2026-01-02T00:00:00Z")
    both = serve(load(old, new))
    assert winners(both) == {"default/gw/tcp/*": "tcproute/default/old"}
    told = both.statuses.tcp_routes["default", "new"].parents[0].conditions
    assert [one.type for one in told if one.status == "True"][-1] == "RouteRulesShadowed"
    alone = serve(load(new), both)
    assert winners(alone) == {"default/gw/tcp/*": "tcproute/default/new"}
    told = alone.statuses.tcp_routes["default", "new"].parents[0].conditions
    assert "RouteRulesShadowed" not in [one.type for one in told]
    back = serve(load(old, new), alone)
    assert back.statuses.tcp_routes == both.statuses.tcp_routes


@pytest.mark.parametrize("kind", ["TLSRoute", "TCPRoute", "UDPRoute"])
def test_the_place_of_a_route_with_a_mistake_goes_to_nobody_else(kind: str) -> None:
    hosts = "a.test" if kind == "TLSRoute" else ""
    old = route(kind, "old", created="2026-01-01T00:00:00Z", hosts=hosts, ref="{name: db, prt: 1}")
    new = route(kind, "new", created="2026-01-02T00:00:00Z", hosts=hosts)
    (found,) = places(serve(load(old, new))).values()
    assert found.route == f"{kind.lower()}/default/old"
    assert found.backends == ()
    assert "spec.rules[0].backendRefs[0].prt" in found.reason


def test_hostnames_that_cannot_be_read_have_no_place() -> None:
    wrong = route("TLSRoute", "old", hosts='"a b"')
    assert winners(serve(load(wrong, route("TLSRoute", "new", hosts="a.test")))) == {
        "default/gw/tls/a.test": "tlsroute/default/new"
    }


def test_a_second_object_of_a_name_keeps_the_names_closed_that_the_first_has_not() -> None:
    text = route("TLSRoute", "one", hosts="a.test") + route(
        "TLSRoute", "one", hosts="a.test, b.test"
    )
    first, second = decode_documents(text.encode(), "a.yaml").objects
    closed = close_duplicate(second, first, 2)
    assert closed is not None
    found = places(serve(load().replace([first, closed])))
    assert found["default/gw/tls/a.test"].backends
    assert found["default/gw/tls/b.test"].backends == ()
    tcp = decode_documents((route("TCPRoute", "one") * 2).encode(), "a.yaml").objects
    assert close_duplicate(tcp[1], tcp[0], 2) is None


def test_an_address_among_hostnames_that_an_api_server_lets_through_closes_the_others() -> None:
    snapshot = load(route("TLSRoute", "a", hosts="a.test"))
    one = snapshot.tls_routes["default", "a"]
    spec = msgspec.structs.replace(one.spec, hostnames=("a.test", "10.0.0.1"))
    (found,) = places(serve(snapshot.replace([msgspec.structs.replace(one, spec=spec)]))).values()
    assert (found.hostname, found.backends) == ("a.test", ())
    assert "10.0.0.1" in found.reason or "IP" in found.reason


def test_who_is_shadowed_is_told_the_same_however_it_came_about() -> None:
    """By a nearer hostname of another route, and by a nearer listener; both come and go."""
    wide = 'name: tls, port: 443, protocol: TLS, hostname: "*.test", tls: {mode: Passthrough}'
    near = "name: near, port: 443, protocol: TLS, hostname: a.test, tls: {mode: Passthrough}"
    one, all_of_them = gateway(wide), gateway(wide, near)
    exact = route("TLSRoute", "exact", hosts="a.test")
    any_name, bare = (
        route("TLSRoute", "any", hosts='"*.test"'),
        route("TLSRoute", "bare", hosts='"*.t"').replace('"*.t"', '"*.test", "*.a.test"'),
    )
    worlds = (
        (one + exact, 0),
        (one + exact + any_name, 0),
        (all_of_them + exact + any_name, 1),  # exact: the listener `near` has its only hostname
        (one + exact + any_name + bare, 1),  # bare: `any` is before it
        (one + exact + bare, 0),
    )
    before: Translation | None = None
    for world, shadowed in worlds:
        decoded = decode_documents((world + _SERVICE).encode(), "a.yaml")
        assert not decoded.problems, decoded.problems
        snapshot = Snapshot.of(decoded.objects)
        before, alone = serve(snapshot, before), serve(snapshot)
        assert before.statuses.tls_routes == alone.statuses.tls_routes
        found = [one.line() for one in before.problems if one.reason == "Shadowed"]
        assert len(found) == shadowed, found
