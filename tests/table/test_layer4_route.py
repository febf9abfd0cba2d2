"""Layer 4 routes in the table: a resource each, and what they name."""

import msgspec

from edgefast import ir
from edgefast.collections.sorted_map import SortedMap, values_of
from edgefast.proxy.tables.references import named_by
from edgefast.table import compile_fleet, diff


def fleet(*routes: ir.StreamRoute) -> ir.Fleet:
    by_place = SortedMap({(one.listener, one.hostname): one for one in routes})
    return ir.Fleet(name="f", stream_routes=values_of(by_place))


def route(hostname: str, *clusters: str) -> ir.StreamRoute:
    shares = tuple(ir.StreamBackend(cluster=name) for name in clusters)
    return ir.StreamRoute(listener="default/edge/tls", hostname=hostname, backends=shares)


def test_each_is_a_resource_of_its_place_and_only_what_changed_is_sent() -> None:
    one, other = route("a.example", "c1"), route("*.example", "c2")
    first = compile_fleet(fleet(one, other))
    assert list(first.names_of("stream_route")) == [
        "default/edge/tls/*.example",
        "default/edge/tls/a.example",
    ]
    second = compile_fleet(fleet(route("a.example", "c3"), other), first)
    delta = diff(first, second)
    assert [(put.type, put.name) for put in delta.put] == [
        ("stream_route", "default/edge/tls/a.example")
    ]
    assert not delta.remove
    assert second.version == compile_fleet(fleet(route("a.example", "c3"), other)).version


def test_they_name_the_clusters_of_their_valid_shares() -> None:
    data = msgspec.msgpack.encode(route("a.example", "c1", "", "c2"))
    key = ("stream_route", "default/edge/tls/a.example")
    assert named_by(key, data) == {("cluster", "c1"), ("cluster", "c2")}
    assert named_by(key, b"\xff") == frozenset()


def test_they_are_put_before_listeners_and_after_clusters() -> None:
    listener = ir.Listener(
        name="default/edge/tls", port=443, bind_port=10443, protocol="TLS", hostname="*"
    )
    whole = msgspec.structs.replace(
        fleet(route("a.example", "c1")), listeners=(listener,), clusters=(ir.Cluster(name="c1"),)
    )
    order = [put.type for put in diff(None, compile_fleet(whole)).put]
    assert order == ["cluster", "stream_route", "listener"]
