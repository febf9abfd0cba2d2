"""UDP sessions when tables change: who may go on with the backend that it has, and what a fault costs."""

from __future__ import annotations

import pytest

from core.fleets import CLUSTER
from core.stream.datagrams import ask, backend, client
from core.stream.streams import one_cluster, stream_fleet, stream_listener, stream_route
from core.world import World
from edgefast import ir

OTHER = "ns/other/stream"


async def test_a_route_that_moves_takes_its_sessions_along(world: World) -> None:
    first, second = await backend(world, b"1"), await backend(world, b"2")
    parts = (
        stream_listener(protocol="UDP"),
        one_cluster(first.port, name="a"),
        one_cluster(second.port, name="b"),
    )
    world.apply(stream_fleet(*parts, stream_route("a")))
    port = await world.listen_datagrams()
    sock = client(world, port)
    assert await ask(world, sock, b"x") == b"1x"
    world.apply(stream_fleet(*parts, stream_route("b", "a")))  # its backend has a share still
    assert await ask(world, sock, b"x") == b"1x"
    assert first.got[0] == first.got[1]
    world.apply(stream_fleet(*parts, stream_route("b")))
    assert await ask(world, sock, b"x") == b"2x"
    await world.until(lambda: world.lines())
    assert [line["end"] for line in world.lines()] == ["backend_gone"]
    world.apply(stream_fleet(*parts, stream_route("")))
    sock.send(b"x")
    await world.until(lambda: world.counters["stream_refused_route"] == 1, seconds=5)
    assert (len(first.got), len(second.got)) == (2, 1)
    assert world.counters["stream_sessions_active"] == 0


async def test_a_port_of_another_listener_has_none_of_the_former_ones_sessions(
    world: World,
) -> None:
    first, second = await backend(world, b"1"), await backend(world, b"2")
    clusters = (one_cluster(first.port, name="a"), one_cluster(second.port, name="b"))
    world.apply(stream_fleet(stream_listener(protocol="UDP"), stream_route("a"), *clusters))
    sock = client(world, await world.listen_datagrams())
    assert await ask(world, sock, b"x") == b"1x"
    world.apply(
        stream_fleet(
            stream_listener(OTHER, protocol="UDP"), stream_route("b", listener=OTHER), *clusters
        )
    )
    assert await ask(world, sock, b"x") == b"2x"
    assert len(first.got) == 1
    await world.until(lambda: world.lines())
    assert [line["listener"] for line in world.lines()] == ["ns/gw/stream"]


async def test_a_fault_costs_the_session_that_it_happened_to(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    listener = stream_listener(protocol="UDP")
    wrong = ir.Cluster(name=CLUSTER, endpoints=(ir.Endpoint(address="no.address", port=53),))
    world.apply(stream_fleet(listener, wrong))
    port = await world.listen_datagrams()
    socks = [client(world, port) for _ in range(3)]
    for sock in socks:
        sock.send(b"x")
        sock.send(b"y")
    await world.until(lambda: world.counters["stream_datagrams_received"] == 6)
    assert len(world.take_faults()) == 3
    assert world.counters["stream_sessions_active"] == 0
    assert [one["active"] for one in world.engine.dump()["stream_listeners"]] == [0]
    assert [line["end"] for line in world.lines()] == ["fault"] * 3
    there = await backend(world)
    world.apply(stream_fleet(listener, one_cluster(there.port)))
    for sock in socks:
        assert await ask(world, sock, b"z") == b"z"
