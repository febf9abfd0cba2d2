"""Listeners come, go and move between ports while connections stay open."""

from __future__ import annotations

import socket

import pytest

from core.apart import apart, shift
from core.backend import say
from core.client import make_request
from core.fleets import (
    LISTENER,
    PORT,
    make_cluster,
    make_fleet,
    make_host,
    make_listener,
    make_rule,
)
from core.world import World
from edgefast import ir


async def test_a_port_without_a_listener_refuses_connections(world: World) -> None:
    port = await world.listen(PORT)
    client = await world.client(port)
    await client.ending()
    assert world.counters["connections_refused"] == 1
    backend = await world.backend(say("now"))
    world.apply(make_fleet(make_cluster(backend.port)))
    assert (await (await world.client(port)).get()).body == b"now"


async def test_a_listener_comes_and_goes(world: World) -> None:
    backend = await world.backend(say("yes"))
    cluster = make_cluster(backend.port)
    first = make_host(make_rule())
    other = make_listener("ns/gw/other", port=81)
    port = await world.serve(make_fleet(cluster, first))
    second = await world.listen(81)
    world.apply(
        make_fleet(
            cluster, first, make_listener(), other, make_host(make_rule(), listener=other.name)
        )
    )
    client = await world.client(second)
    assert (await client.get()).body == b"yes"
    world.apply(make_fleet(cluster, first))
    assert (await client.get()).status == 404
    assert world.counters["no_listener"] == 1
    assert (await (await world.client(port)).get()).body == b"yes"


async def test_a_listener_moves_to_another_port(world: World) -> None:
    backend = await world.backend(say("yes"))
    cluster = make_cluster(backend.port)
    old = await world.serve(make_fleet(cluster))
    new = await world.listen(81)
    client = await world.client(old)
    assert (await client.get()).status == 200
    world.apply(make_fleet(cluster, make_listener(port=81)))
    last = await client.get()
    assert (last.status, last.value("connection")) == (404, "close")
    assert (await (await world.client(new)).get()).body == b"yes"
    world.apply(make_fleet(cluster, make_listener()))
    assert (await (await world.client(old)).get()).body == b"yes"
    assert (await (await world.client(new)).get()).status == 404


@pytest.mark.parametrize("there", [(), ("127.0.0.1",), ("127.0.0.1", "127.0.0.2")])
@pytest.mark.parametrize("before", [(), ("127.0.0.1",), ("127.0.0.1", "127.0.0.2")])
async def test_listeners_of_other_addresses_serve_old_connections_and_the_old_acceptor(
    world: World, before: tuple[str, ...], there: tuple[str, ...]
) -> None:
    backend = await world.backend(say("yes"))
    cluster = make_cluster(backend.port)

    def fleet(addresses: tuple[str, ...]) -> ir.Fleet:
        return make_fleet(cluster, make_listener(addresses=addresses))

    world.apply(fleet(before))
    port = await world.listen(PORT, addresses=before)
    old = [await world.client(port) for _ in range(2)]
    assert (await old[0].get()).status == 200
    world.apply(fleet(there))
    for one in (*old, await world.client(port)):
        answer = await one.get()
        assert (answer.status, answer.body) == (200, b"yes")
    world.apply(fleet(("127.0.0.9",)))
    assert (await (await world.client(port)).get()).status == 421


async def test_tables_of_ports_go_with_their_acceptors(world: World) -> None:
    backend = await world.backend(say("yes"))
    await world.serve(make_fleet(make_cluster(backend.port)))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        for number in range(20):
            key = (f"127.0.0.{number}",)
            world.engine.listen(sock.fileno(), PORT, None, key).stop()
            world.engine.listen_stream(sock.fileno(), PORT, key).stop()
    assert world.engine.port_tables() == 1


@apart(clock=True)
async def test_idle_connections_of_a_port_without_listeners_are_closed(world: World) -> None:
    backend = await world.backend(say("yes"))
    cluster = make_cluster(backend.port)
    client = await world.client_of(make_fleet(cluster))
    assert (await client.get()).status == 200
    world.apply(make_fleet(cluster, make_listener(port=81)))
    await world.turns()
    assert world.engine.open_connections == 1
    shift(4)
    assert await client.receive() == b""


async def test_a_listener_changes_its_hostname(world: World) -> None:
    backend = await world.backend(say("yes"))
    cluster = make_cluster(backend.port)
    client = await world.client_of(make_fleet(cluster, make_listener(hostname="a.test")))
    assert [(await client.get(host=host)).status for host in ("A.test", "b.test")] == [200, 404]
    world.apply(make_fleet(cluster, make_listener(hostname="*.b.test")))
    hosts = ("a.test", "b.test", "x.B.test", "x.y.b.test")
    assert [(await client.get(host=host)).status for host in hosts] == [404, 404, 200, 200]


async def test_the_most_specific_listener_owns_a_host(world: World) -> None:
    names = {"any": "*", "wide": "*.test", "narrow": "*.a.test", "exact": "x.a.test"}
    parts: list[ir.Listener | ir.VirtualHost | ir.Cluster] = []
    for name, hostname in names.items():
        backend = await world.backend(say(name))
        listener = make_listener(f"ns/gw/{name}", hostname=hostname)
        parts += [listener, make_cluster(backend.port, name=name)]
        if name != "narrow":  # it has no route: it owns its hosts all the same
            parts.append(make_host(make_rule(name), listener=listener.name))
    client = await world.client_of(make_fleet(*parts))
    hosts = ("x.a.test", "y.a.test", "b.test", "test", "a.b.c.d")
    answers = [await client.get(host=host) for host in hosts]
    assert [one.status for one in answers] == [200, 404, 200, 200, 200]
    assert [one.body for one in answers if one.status == 200] == [b"exact", b"wide", b"any", b"any"]
    assert world.counters["no_route"] == 1


async def test_hosts_may_come_before_their_listener_and_go_after_it(world: World) -> None:
    backend = await world.backend(say("yes"))
    shards = world.compile(make_fleet(make_cluster(backend.port)))
    resources = shards.resources
    host = ("virtual_host", f"{LISTENER}/*")
    rest = [one for key, one in resources.items() if key != ("listener", LISTENER)]
    assert world.send(rest, [], "1") == []
    port = await world.listen()
    assert world.send([resources["listener", LISTENER]], [], "2") == []
    client = await world.client(port)
    assert (await client.get()).body == b"yes"
    assert world.send([], [("listener", LISTENER)], "3") == []
    assert world.send([], [host], "4") == []
    last = await client.get()
    assert (last.status, last.value("connection")) == (404, "close")
    assert world.engine.dump()["listeners"] == []
    assert world.send(list(resources.values()), [], "5") == []
    assert (await (await world.client(port)).get()).body == b"yes"


@apart()
async def test_a_removed_listener_is_not_read_when_its_last_request_ends(world: World) -> None:
    backend = await world.backend()
    cluster = make_cluster(backend.port)
    port = await world.serve(make_fleet(cluster))
    client, other = await world.client(port), await world.client(port)
    await client.send(make_request())
    call = await backend.call()
    world.apply(ir.Fleet(name="standalone", clusters=(cluster,)))  # the bytes of its hosts are gone
    assert (await other.get()).status == 404
    call.reply(b"done")
    last = await client.response()
    assert (last.body, last.value("connection")) == (b"done", "close")
    assert await client.receive() == b""


@apart()
async def test_a_removed_listener_of_a_large_host_is_not_read_either(world: World) -> None:
    backend = await world.backend()
    cluster = make_cluster(backend.port)
    rules = [(f"/team-{i}/service", make_rule(route=f"team-{i}/web")) for i in range(500)]
    client = await world.client_of(make_fleet(make_host(*rules), cluster))
    await client.send(make_request("/team-7/service"))
    call = await backend.call()
    world.apply(ir.Fleet(name="standalone", clusters=(cluster,)))
    call.reply(b"done")
    last = await client.response()
    assert (last.body, last.value("connection")) == (b"done", "close")
    assert await client.receive() == b""
