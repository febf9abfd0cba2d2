"""Policies of traffic for connections and UDP sessions: timeouts, load balancing, ejected endpoints, units that are broken."""

from __future__ import annotations

import socket

import pytest

from core.stream import datagrams
from core.stream.streams import (
    Line,
    Place,
    connect,
    is_refused,
    one_cluster,
    says,
    stream_fleet,
    stream_listener,
    stream_route,
)
from core.world import World
from edgefast import ir

UNIT = "traffic/ns/p"


def traffic(**leaves: object) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=UNIT, traffic=ir.Traffic(**leaves))  # type: ignore[arg-type]


def by(kind: str, **more: object) -> ir.LoadBalancer:
    return ir.LoadBalancer(type=kind, **more)  # type: ignore[arg-type]


async def serve(world: World, unit: ir.PolicyUnit | None, count: int = 3) -> int:
    ports = []
    for number in range(count):
        place = await Place(says(b"%d" % number)).start()
        world.keep(place)
        ports.append(place.port)
    units = () if unit is None else (unit,)
    route = stream_route(traffic=(UNIT,))
    world.apply(stream_fleet(stream_listener(), route, one_cluster(*ports), *units))
    return await world.listen_stream()


async def who(world: World, port: int, source: str = "127.0.0.1") -> bytes:
    line: Line = await connect(world, port, local_addr=(source, 0))
    found = await line.take(1)
    line.close()
    return found


async def test_in_turn(world: World) -> None:
    port = await serve(world, traffic(load_balancer=by("round_robin")))
    found = [await who(world, port) for _ in range(9)]
    assert {found.count(b"%d" % number) for number in range(3)} == {3}


async def test_by_the_address_of_the_client(world: World) -> None:
    unit = traffic(load_balancer=by("hash", hash=ir.HashPolicy(source=True)))
    port = await serve(world, unit)
    first = {source: await who(world, port, source) for source in SOURCES}
    assert len(set(first.values())) > 1
    assert {source: await who(world, port, source) for source in SOURCES} == first


SOURCES = [f"127.0.0.{number}" for number in range(1, 17)]


async def test_what_a_hash_has_of_requests_counts_as_least_load(world: World) -> None:
    unit = traffic(load_balancer=by("hash", hash=ir.HashPolicy(headers=("x-a",))))
    port = await serve(world, unit)
    assert await who(world, port) in (b"0", b"1", b"2")


async def test_the_time_to_connect(world: World) -> None:
    """A backend whose queue of connections is full accepts nothing."""
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    world.hold(full)
    for _ in range(4):
        held = socket.socket()
        held.setblocking(False)
        held.connect_ex(full.getsockname())
        world.hold(held)
    route = stream_route(traffic=(UNIT,))
    cluster = one_cluster(full.getsockname()[1])
    world.apply(stream_fleet(stream_listener(), route, cluster, traffic(connect_timeout=100)))
    assert await is_refused(world, await world.listen_stream())  # the listener would wait for 30 s
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["end"] for line in world.lines()] == ["connect_timeout"]


@pytest.mark.parametrize("unit", [None, ir.PolicyUnit(name=UNIT, status=500)])
async def test_a_broken_unit_closes_the_route(world: World, unit: ir.PolicyUnit | None) -> None:
    port = await serve(world, unit)
    assert await is_refused(world, port)
    await world.until(lambda: world.engine.open_connections == 0)
    (line,) = world.lines()
    assert (line["end"], line["policy"]) == ("policy_denied", UNIT)
    assert "endpoint" not in line


async def test_an_edit_applies_to_the_next_connection(world: World) -> None:
    port = await serve(world, ir.PolicyUnit(name=UNIT, status=500), 1)
    assert await is_refused(world, port)
    place = await Place(says(b"7")).start()
    world.keep(place)
    route = stream_route(traffic=(UNIT,))
    cluster = one_cluster(place.port)
    world.apply(stream_fleet(stream_listener(), route, cluster, traffic(connect_timeout=5000)))
    assert await who(world, port) == b"7"


async def test_of_udp_sessions_too(world: World) -> None:
    there = [await datagrams.backend(world, b"%d" % number) for number in range(2)]
    listener = stream_listener(protocol="UDP")
    cluster = one_cluster(*(one.port for one in there))
    route = stream_route(traffic=(UNIT,))
    world.apply(stream_fleet(listener, route, cluster, traffic(load_balancer=by("round_robin"))))
    port = await world.listen_datagrams()
    found = [
        (await datagrams.ask(world, datagrams.client(world, port), b"a"))[:1] for _ in range(4)
    ]
    assert sorted(found) == [b"0", b"0", b"1", b"1"]
    world.apply(stream_fleet(listener, route, cluster))
    sock = datagrams.client(world, port)
    sock.send(b"b")
    await world.until(lambda: world.counters["stream_refused_policy"] == 1)


async def test_an_endpoint_that_accepts_no_connection_is_ejected(world: World) -> None:
    place = await Place(says(b"1")).start()
    world.keep(place)
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        dead = gone.getsockname()[1]
    outlier = ir.OutlierDetection(server=0, local=1, percent=100)
    unit = traffic(outlier=outlier, load_balancer=by("round_robin"))
    route = stream_route(traffic=(UNIT,))
    world.apply(stream_fleet(stream_listener(), route, one_cluster(dead, place.port), unit))
    port = await world.listen_stream()
    assert [await who(world, port) for _ in range(8)] == [b"1"] * 8
    await world.until(lambda: world.engine.open_connections == 0)
    assert sorted(line["tries"] for line in world.lines()) == [1] * 7 + [2]


async def test_an_endpoint_that_fails_its_check_gets_no_connections(world: World) -> None:
    places = [await Place(says(word)).start() for word in (b"ill", b"well")]
    for place in places:
        world.keep(place)
    check = ir.HealthCheck(kind="tcp", interval=50, unhealthy=1, expects=b"well")
    unit = traffic(check=check, load_balancer=by("round_robin"))
    cluster = one_cluster(*(one.port for one in places), treatments=((0, (UNIT,)),))
    world.apply(stream_fleet(stream_listener(), stream_route(traffic=(UNIT,)), cluster, unit))
    port = await world.listen_stream()
    await world.until(lambda: world.counters["health_checks_ill"] > 0)
    assert [await who(world, port) for _ in range(6)] == [b"w"] * 6
