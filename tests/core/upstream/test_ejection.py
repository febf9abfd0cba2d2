"""Passive health: five failures in a row take an endpoint out, never more than half of a set; all out is panic; they return."""

from __future__ import annotations

import pytest

from core.apart import apart, shift
from core.backend import Backend, say
from core.client import make_request
from core.fleets import CLUSTER, ROW, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir


def health(world: World) -> list[bool]:
    return [one["healthy"] for one in world.cluster(CLUSTER)["endpoints"]]


def failures(world: World) -> list[int]:
    """Failures in a row of each endpoint."""
    return [one["failures"] for one in world.cluster(CLUSTER)["endpoints"]]


async def fail_until(world: World, port: int, ejections: int) -> None:
    """Ask until that many endpoints were taken out."""
    client = await world.client(port)
    for _ in range(200):
        if world.counters["endpoint_ejections"] >= ejections:
            return
        await client.get()
    raise AssertionError(f"no ejection: {world.cluster(CLUSTER)}")


async def test_five_refused_connections_take_an_endpoint_out(world: World) -> None:
    bad, good = world.refusing_port(), await world.backend(say("good"))
    host = make_host(make_rule(), ("/b", make_rule(route="ns/b")))
    client = await world.client_of(make_fleet(make_listener(), host, make_cluster(bad, good.port)))
    seen = 0
    while world.counters["endpoint_ejections"] == 0:
        assert (await client.get()).status == 200  # the next endpoint answers
        if failures(world)[0] != seen:
            seen += 1
            assert failures(world)[0] == (seen if seen < 5 else 0)
    assert seen == 5
    assert world.counters["upstream_connect_failures"] == 5
    assert health(world) == [False, True]
    for _ in range(50):
        assert (await client.get("/b")).status == 200
    assert world.counters["upstream_connect_failures"] == 5


async def test_a_success_begins_the_count_again(world: World) -> None:
    broken = True

    def answer(call: object) -> bytes:
        return b"nonsense\r\n\r\n" if broken else b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

    one, two = await world.backend(answer), await world.backend(answer)
    client = await world.client_of(make_fleet(make_cluster(one.port, two.port)))
    assert (await client.get()).status == 502
    while max(failures(world)) < 4:
        assert (await client.get()).status == 502
    broken = False
    while max(failures(world)):
        assert (await client.get()).status == 200
    broken = True
    while max(failures(world)) < 4:
        assert (await client.get()).status == 502
    assert world.counters["endpoint_ejections"] == 0


async def ask_and_leave(world: World, port: int) -> None:
    """A request on a connection of its own, whatever comes of it."""
    client = await world.client(port)
    await client.send(make_request())
    while await client.receive():
        if client.received:
            break
    client.close()


@pytest.mark.parametrize("how", ["reset", "nonsense", "cut"])
async def test_broken_answers_take_an_endpoint_out(world: World, how: str) -> None:
    bad, good = await world.backend(), await world.backend(say("good"))

    def answer(call: object) -> bytes | None:
        link = bad.links[-1]
        if how == "reset":
            link.abort()
            return None
        if how == "cut":
            link.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12")
            link.close()
            return None
        return b"HTTP/9.9 what\r\n\r\n"

    bad.answer = answer
    port = await world.serve(make_fleet(make_cluster(bad.port, good.port)))
    for _ in range(200):
        if world.counters["endpoint_ejections"]:
            break
        await ask_and_leave(world, port)
    await world.settle()
    assert health(world) == [False, True]
    assert bad.count == 5


@pytest.mark.parametrize(("size", "most"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
async def test_at_most_half_of_a_set_is_out(world: World, size: int, most: int) -> None:
    ports = [world.refusing_port() for _ in range(size)]
    client = await world.client_of(make_fleet(make_cluster(*ports)))
    for _ in range(40):
        assert (await client.get()).status == 503
    assert health(world).count(False) == most
    assert world.counters["endpoint_ejections"] == most


async def test_when_all_are_out_all_are_used(world: World) -> None:
    """Two of four are out; an update takes the healthy ones away."""
    bad = [world.refusing_port(), world.refusing_port()]
    good = await world.backend(say("good"))
    port = await world.serve(make_fleet(make_cluster(*bad, good.port)))
    await fail_until(world, port, 1)
    world.apply(make_fleet(make_cluster(*bad, good.port, world.refusing_port())))
    await fail_until(world, port, 2)
    out = [
        int(one["address"].rpartition(":")[2])
        for one in world.cluster(CLUSTER)["endpoints"]
        if not one["healthy"]
    ]
    assert len(out) == 2
    world.apply(make_fleet(make_cluster(*out)))
    assert health(world) == [False, False]
    before = world.counters["upstream_connect_failures"]
    client = await world.client(port)
    assert (await client.get()).status == 503
    assert world.counters["upstream_connect_failures"] > before  # they were asked all the same


async def test_a_timeout_is_one_failure(world: World) -> None:
    backend = await world.backend()
    timeouts = ir.Timeouts(backend_request=40)
    client = await world.client_of(
        make_fleet(make_rule(timeouts=timeouts), make_cluster(backend.port))
    )
    for number in (1, 2, 3):
        assert (await client.get()).status == 504
        assert failures(world) == [number]
    assert world.counters.row(ROW)["timeouts"] == 3


async def test_a_client_that_stops_sending_is_not_the_backends_failure(world: World) -> None:
    backend = await world.backend()
    listener = make_listener(stream_idle_timeout=60)
    client = await world.client_of(make_fleet(listener, make_cluster(backend.port)))
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 10\r\n\r\n123")
    assert (await client.response()).status in (408, 504)
    assert failures(world) == [0]


async def test_a_client_that_leaves_is_not_the_backends_failure(world: World) -> None:
    backend, client = await world.pair()
    await client.send(make_request())
    await backend.call()
    client.reset()
    await world.settle()
    assert failures(world) == [0]


async def _eject(world: World) -> tuple[int, Backend]:
    bad, good = await world.backend(lambda call: b"nonsense\r\n\r\n"), await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(bad.port, good.port)))
    await fail_until(world, port, 1)
    return port, bad


@apart(clock=True)
async def test_an_endpoint_returns_after_30_seconds_and_longer_each_time(world: World) -> None:
    port, _ = await _eject(world)
    for times in (1, 2, 3):
        span = 30 * times
        shift(span - 10)
        await world.turns()
        client = await world.client(port)
        for _ in range(5):
            assert (await client.get()).status == 200
        assert health(world) == [False, True]
        shift(10)
        await world.until(lambda: health(world) == [True, True], "it is back")
        assert world.cluster(CLUSTER)["endpoints"][0]["ejections"] == times
        await fail_until(world, port, times + 1)


@apart(clock=True)
async def test_no_ejection_is_longer_than_300_seconds(world: World) -> None:
    port, _ = await _eject(world)
    for times in range(1, 14):
        if times == 13:
            shift(290)
            client = await world.client(port)
            assert (await client.get()).status == 200
            assert health(world) == [False, True]
            shift(11)
        else:
            shift(30 * times + 1)
        await world.until(
            lambda: health(world) == [True, True], f"it is back for the {times}th time"
        )
        await fail_until(world, port, times + 1)


@apart(clock=True)
async def test_ejections_of_long_ago_do_not_count(world: World) -> None:
    port, _ = await _eject(world)
    shift(31)
    await world.until(lambda: health(world) == [True, True])
    shift(700)
    await fail_until(world, port, 2)
    assert health(world) == [False, True]
    shift(31)
    await world.until(lambda: health(world) == [True, True], "it is back after the shortest time")


@apart(clock=True)
async def test_a_removed_endpoint_does_not_return_from_the_dead(world: World) -> None:
    port, bad = await _eject(world)
    good = await world.backend(say("y"))
    world.apply(make_fleet(make_cluster(good.port)))
    shift(31)
    client = await world.client(port)
    assert (await client.get()).body == b"y"
    world.apply(make_fleet(make_cluster(good.port, bad.port)))
    await fail_until(world, port, 2)
    assert health(world) == [True, False]
