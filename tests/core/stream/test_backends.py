"""How a connection finds a backend: others are tried before a byte is sent on, within one time, and health is the endpoints'."""

from __future__ import annotations

import time

from core.fleets import CLUSTER
from core.stream.streams import (
    Place,
    connect,
    echo,
    is_refused,
    one_cluster,
    says,
    stream_fleet,
    stream_listener,
)
from core.world import World


async def test_another_endpoint_is_asked_when_one_refuses(world: World) -> None:
    good = await Place(says(b"good")).start()
    world.keep(good)
    world.apply(stream_fleet(one_cluster(world.refusing_port(), good.port)))
    port = await world.listen_stream()
    for _ in range(8):
        client = await connect(world, port)
        await client.send(b"+")
        assert await client.take(5) == b"good+"
        client.close()
    await world.until(lambda: world.engine.open_connections == 0)
    assert sorted({line["tries"] for line in world.lines()}) == [1, 2]
    assert world.counters["upstream_connect_failures"] >= 1


async def test_an_endpoint_that_does_not_answer_has_half_of_the_time(world: World) -> None:
    good = await Place(says(b"good")).start()
    world.keep(good)
    silent = await world.silent_port()
    world.apply(stream_fleet(stream_listener(connect_timeout=600), one_cluster(silent, good.port)))
    port = await world.listen_stream()
    for _ in range(6):
        client = await connect(world, port)
        assert await client.take(4) == b"good"
        client.close()


async def test_nobody_takes_it(world: World) -> None:
    world.apply(stream_fleet(one_cluster(world.refusing_port(), world.refusing_port())))
    port = await world.listen_stream()
    assert await is_refused(world, port)
    await world.until(lambda: world.engine.open_connections == 0)
    (line,) = world.lines()
    assert (line["end"], line["tries"], line["connect_ms"]) == ("connect_failed", 2, 0)
    assert world.counters["stream_refused_backend"] == 1


async def test_the_time_of_all_tries_is_bounded(world: World) -> None:
    silent = [await world.silent_port() for _ in range(2)]
    world.apply(stream_fleet(stream_listener(connect_timeout=200), one_cluster(*silent)))
    client = await connect(world, await world.listen_stream())
    began = time.monotonic()
    assert await client.is_reset()
    assert time.monotonic() - began < 10
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["end"] for line in world.lines()] == ["connect_timeout"]


async def test_a_cluster_without_endpoints(world: World) -> None:
    world.apply(stream_fleet(one_cluster()))
    assert await is_refused(world, await world.listen_stream())
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["end"] for line in world.lines()] == ["no_endpoint"]


async def test_a_client_that_leaves_while_a_backend_is_asked(world: World) -> None:
    world.apply(stream_fleet(one_cluster(await world.silent_port())))
    client = await connect(world, await world.listen_stream())
    await world.until(lambda: world.engine.open_connections == 1)
    client.reset()
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["end"] for line in world.lines()] == ["client_reset"]
    assert world.cluster(CLUSTER)["endpoints"][0]["failures"] == 0  # it has not failed


async def test_an_endpoint_that_fails_again_and_again_is_left_out(world: World) -> None:
    good = await Place(echo).start()
    world.keep(good)
    world.apply(stream_fleet(one_cluster(world.refusing_port(), good.port)))
    port = await world.listen_stream()
    for _ in range(40):
        client = await connect(world, port)
        await client.send(b"x")
        assert await client.take(1) == b"x"
        client.close()
    healthy = [one["healthy"] for one in world.cluster(CLUSTER)["endpoints"]]
    assert healthy == [False, True]
    assert world.counters["endpoint_ejections"] == 1


async def test_the_less_busy_of_two_is_chosen(world: World) -> None:
    places = [await Place(echo).start() for _ in range(2)]
    for one in places:
        world.keep(one)
    world.apply(stream_fleet(one_cluster(*(one.port for one in places))))
    port = await world.listen_stream()
    clients = [await connect(world, port) for _ in range(20)]
    await world.until(lambda: sum(one.count for one in places) == 20)
    assert [one.count for one in places] == [10, 10]
    assert [one["active"] for one in world.cluster(CLUSTER)["endpoints"]] == [10, 10]
    for client in clients:
        client.close()
