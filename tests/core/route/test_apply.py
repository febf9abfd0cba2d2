"""apply(): what is accepted takes effect between two requests, what is refused is reported and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from core.backend import say
from core.client import make_request
from core.conftest import check
from core.fleets import (
    CLUSTER,
    LISTENER,
    all_resources,
    encode,
    make_cluster,
    make_fleet,
    make_host,
    make_listener,
    make_rule,
)
from core.world import ARENA, World
from edgefast import ir
from edgefast.core import TlsContext
from edgefast.table import Resource, compile_fleet

HOST = f"{LISTENER}/*"


def host_blob(fleet: ir.Fleet, name: str = HOST) -> bytes:
    return compile_fleet(fleet).resources["virtual_host", name].data


def resource(type_: str, name: str, data: bytes) -> Resource:
    return Resource(type_, name, "0" * 16, data)


async def test_the_next_request_of_an_open_connection_sees_the_new_table(world: World) -> None:
    one, two = await world.backend(say("one")), await world.backend(say("two"))
    clusters = make_cluster(one.port, name="one"), make_cluster(two.port, name="two")
    client = await world.client_of(make_fleet(make_rule("one"), *clusters))
    assert (await client.get()).body == b"one"
    world.apply(make_fleet(make_rule("two"), *clusters))  # overwrites what it replaced
    assert (await client.get()).body == b"two"
    assert world.engine.version != ""


async def test_a_request_in_flight_ends_on_the_rule_it_began_with(world: World) -> None:
    backend, other = await world.backend(), await world.backend(say("new"))
    clusters = make_cluster(backend.port, name="old"), make_cluster(other.port, name="new")

    def rule(name: str) -> ir.Rule:
        return make_rule(name, response_headers=ir.HeaderOps(set=(("x-table", name),)))

    port = await world.serve(make_fleet(rule("old"), *clusters))
    client, later = await world.client(port), await world.client(port)
    await client.send(make_request("/slow"))
    call = await backend.call()
    world.apply(make_fleet(rule("new"), *clusters))
    answer = await later.get()
    assert (answer.body, answer.value("x-table")) == (b"new", "new")
    call.reply(b"late")
    answer = await client.response()
    assert (answer.body, answer.value("x-table")) == (b"late", "old")


async def test_swaps_under_traffic_fail_no_request(world: World) -> None:
    backend = await world.backend(lambda call: None)
    cluster = make_cluster(backend.port)

    def fleet(mark: int) -> ir.Fleet:
        ops = ir.HeaderOps(set=(("x-mark", str(mark)),))
        return make_fleet(make_rule(request_headers=ops), cluster)

    port = await world.serve(fleet(0))
    clients = [await world.client(port) for _ in range(8)]
    for mark in range(1, 41):
        for client in clients:
            await client.send(make_request())
        calls = await backend.calls(4)
        world.apply(fleet(mark))
        calls += await backend.calls(4)
        marks = {call.message.value(b"x-mark") for call in calls}
        assert marks <= {b"%d" % mark, b"%d" % (mark - 1)}
        for call in calls:
            call.reply(b"ok")
        for client in clients:
            assert (await client.response()).status == 200
    assert world.counters["applies"] == 41


async def test_an_unknown_type_is_refused_alone(world: World) -> None:
    backend = await world.backend(say("yes"))
    fleet = make_fleet(make_cluster(backend.port))
    puts = [resource("banana", "b", b"x"), *all_resources(fleet)]
    ((type_, name, error),) = world.send(puts, [], "v1")
    assert (type_, name) == ("banana", "b")
    assert "banana" in error
    assert world.counters["resources_refused"] == 1
    client = await world.client(await world.listen())
    assert (await client.get()).body == b"yes"


@pytest.mark.parametrize("at", [0, 4, 8, 20, 64, -1])
async def test_a_damaged_blob_keeps_the_old_one(world: World, at: int) -> None:
    backend = await world.backend(say("old"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    data = bytearray(host_blob(make_fleet(make_rule("none"))))
    data[at] ^= 1
    ((type_, name, error),) = world.send([resource("virtual_host", HOST, bytes(data))], [], "v2")
    assert (type_, name) == ("virtual_host", HOST)
    assert error
    client = await world.client(port)
    assert (await client.get()).body == b"old"
    assert world.engine.version == "v2"
    assert world.counters["resources_refused"] == 1


async def test_a_blob_of_another_host_is_refused(world: World) -> None:
    backend = await world.backend(say("old"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    data = host_blob(
        make_fleet(make_host(make_rule("none"), hostname="a.test")), f"{LISTENER}/a.test"
    )
    ((type_, name, _),) = world.send([resource("virtual_host", HOST, data)], [], "v2")
    assert (type_, name) == ("virtual_host", HOST)
    assert (await (await world.client(port)).get()).body == b"old"


@pytest.mark.parametrize("type_", ["virtual_host", "listener", "cluster"])
async def test_places_outside_the_arena_or_cut_short_are_refused(world: World, type_: str) -> None:
    backend = await world.backend(say("old"))
    fleet = make_fleet(make_cluster(backend.port))
    port = await world.serve(fleet)
    client = await world.client(port)
    assert (await client.get()).body == b"old"  # the cluster is in use
    name = {"virtual_host": HOST, "listener": LISTENER, "cluster": CLUSTER}[type_]
    offset, length = world.place(compile_fleet(fleet).resources[type_, name].data)
    wrong = [
        (offset, length - 1),
        (offset, length - 8),
        (offset, 1),
        (offset, 0),
        (offset + 1, length - 1),
        (ARENA, length),
        (ARENA - 8, length),
        (2**40, length),
        (2**63, length),
        (2**64 - 8, length),
        (offset, 2**64 - 1),
        (offset, ARENA),
    ]
    for place in wrong:
        refused = world.engine.apply([("put", type_, name, *place)], "v2")
        assert [one[:2] for one in refused] == [(type_, name)], place
        assert (await client.get()).body == b"old", place
    assert (await (await world.client(port)).get()).body == b"old"
    assert world.counters["resources_refused"] == len(wrong)


async def test_a_refused_item_does_not_stop_the_others(world: World) -> None:
    backend = await world.backend(say("new"))
    puts = all_resources(make_fleet(make_rule("other"), make_cluster(backend.port, name="other")))
    puts.insert(0, resource("cluster", "x", b"\xc1"))
    puts.insert(2, resource("virtual_host", f"{LISTENER}/a.test", b"junk"))
    puts.append(resource("listener", "ns/gw/other", b"\x80"))
    refused = {(type_, name) for type_, name, _ in world.send(puts, [], "v1")}
    assert refused >= {("virtual_host", f"{LISTENER}/a.test"), ("listener", "ns/gw/other")}
    client = await world.client(await world.listen())
    assert (await client.get()).body == b"new"


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80", b"\x81\xa4name\x01", b"\xff" * 40])
async def test_a_bad_listener_keeps_the_old_one(world: World, data: bytes) -> None:
    backend = await world.backend(say("old"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    ((type_, name, _),) = world.send([resource("listener", LISTENER, data)], [], "v2")
    assert (type_, name) == ("listener", LISTENER)
    assert (await (await world.client(port)).get()).body == b"old"


@pytest.mark.parametrize("used", [True, False], ids=["in use", "not used yet"])
@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80", b"\xff" * 40])
async def test_a_bad_cluster_keeps_the_old_one(world: World, data: bytes, used: bool) -> None:
    _, client = await world.pair(say("old"))
    if used:
        assert (await client.get()).body == b"old"
    ((type_, name, _),) = world.send([resource("cluster", CLUSTER, data)], [], "v2")
    assert (type_, name) == ("cluster", CLUSTER)
    assert (await client.get()).body == b"old"


@pytest.fixture
def picky() -> Iterator[World]:
    """A world that has TLS contexts for some names only."""

    def give(tls: ir.UpstreamTls) -> TlsContext:
        if tls.sni != "good.test":
            raise ValueError(f"no bundle for {tls.sni}")
        return TlsContext(server=False)

    yield from check(World(upstream_tls=give))


async def test_a_cluster_whose_tls_is_wrong_keeps_the_old_one(picky: World) -> None:
    backend = await picky.backend(say("old"))
    port = await picky.serve(make_fleet(make_cluster(backend.port)))
    client = await picky.client(port)
    assert (await client.get()).body == b"old"
    new = make_cluster(1, tls=ir.UpstreamTls(sni="bad.test"))
    ((type_, name, error),) = picky.send([resource("cluster", CLUSTER, encode(new))], [], "v2")
    assert (type_, name, error) == ("cluster", CLUSTER, "no bundle for bad.test")
    assert (await client.get()).body == b"old"
    assert (
        picky.send(
            [
                resource(
                    "cluster", CLUSTER, encode(make_cluster(1, tls=ir.UpstreamTls(sni="good.test")))
                )
            ],
            [],
            "v3",
        )
        == []
    )


async def test_a_listener_with_unusable_settings_keeps_the_old_one(world: World) -> None:
    backend = await world.backend(say("old"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    address = ir.ClientAddress(trusted_cidrs=("10.0.0.0/99",))
    new = make_listener(client_address=address, body_size=1)
    ((type_, name, error),) = world.send([resource("listener", LISTENER, encode(new))], [], "v2")
    assert (type_, name) == ("listener", LISTENER)
    assert "10.0.0.0/99" in error
    answer = await (await world.client(port)).ask(make_request(method="POST", body=b"123"))
    assert answer.status == 200


async def test_removing_what_is_not_there_is_harmless(world: World) -> None:
    types = ("listener", "virtual_host", "fragment", "cluster")
    assert world.send([], [(type_, "ns/gw/none/none.test#3") for type_ in types], "v1") == []
    assert world.engine.version == "v1"
    assert world.engine.dump()["listeners"] == []


async def test_changed_settings_reach_rules_that_were_hit_before(world: World) -> None:
    backend = await world.backend()
    cluster = make_cluster(backend.port)
    client = await world.client_of(make_fleet(make_listener(route_timeout=15_000), cluster))
    for timeout in (15_000, 4_000):
        world.apply(make_fleet(make_listener(route_timeout=timeout), cluster))
        await client.send(make_request())
        call = await backend.call()
        assert call.message.value(b"x-edge-expected-rq-timeout-ms") == b"%d" % timeout
        call.reply()
        await client.response()


async def test_dump_says_what_is_applied(world: World) -> None:
    backend = await world.backend(say("x"))
    hosts = make_host(make_rule(), hostname="a.test"), make_host(make_rule("none"), make_rule())
    fleet = make_fleet(*hosts, make_cluster(backend.port, max_connections=7))
    client = await world.client_of(fleet)
    await client.get(host="a.test")
    await world.settle()
    dump = world.engine.dump()
    assert (dump["connections"], dump["active"]) == (1, 0)
    assert dump["version"] == compile_fleet(fleet).version
    (listener,) = dump["listeners"]
    assert (listener["name"], listener["port"], listener["hostname"]) == (LISTENER, 8080, "*")
    assert listener["virtual_hosts"] == [
        {"name": HOST, "rules": 2, "fragments": 1},
        {"name": f"{LISTENER}/a.test", "rules": 1, "fragments": 1},
    ]
    assert world.cluster(CLUSTER) == {
        "name": CLUSTER,
        "connections": 1,
        "requests": 0,
        "repeats": 0,
        "pending": 0,
        "bodies": 0,
        "bodies_waiting": 0,
        "slow_answers": 0,
        "long_streams": 0,
        "endpoints": [
            {
                "address": f"127.0.0.1:{backend.port}",
                "zone": "",
                "active": 0,
                "idle": 1,
                "shared": 0,
                "streams": 0,
                "draining": False,
                "healthy": True,
                "ejected": False,
                "failures": 0,
                "ejections": 0,
                "connections": 1,
            }
        ],
    }
    msgspec.msgpack.encode(dump)  # it travels
