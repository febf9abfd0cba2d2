"""Connections that move to the worker that waits: as many as are needed, of HTTP/2 too; and what a place is worth while one is made."""

from __future__ import annotations

from typing import Any

from core.client import Client, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.backend import Ask, H2Backend
from core.h2.test_backend_cancels import leave, resets
from core.policy.policies import TRAFFIC, traffic
from core.upstream.workers import Workers
from core.world import World
from edgefast import ir


def bounded(port: int, *, protocol: str = "http1", **bounds: int) -> ir.Fleet:
    """A rule with a breaker, and one on /free without."""
    host = make_host(make_rule(traffic=(TRAFFIC,)), ("/free", make_rule()))
    cluster = make_cluster(port, protocol=protocol)
    return make_fleet(make_listener(body_start=0), host, cluster, traffic(**bounds))


async def start(world: World, **settings: Any) -> H2Backend:
    backend = H2Backend(**settings)
    world.keep(await backend.start())
    return backend


async def begin(world: World, backend: H2Backend, port: int, path: str = "/") -> tuple[Client, Ask]:
    """A request that its backend has."""
    client = await world.client(port)
    await client.send(make_request(path))
    return client, await backend.ask()


async def rest(world: World, count: int) -> None:
    """Wait until a worker has so many idle connections."""
    await world.until(lambda: world.cluster(CLUSTER)["endpoints"][0]["idle"] == count)


async def test_as_many_are_left_as_are_wanted(workers: Workers) -> None:
    """Two workers have two idle ones each; a third needs one."""
    backend = await workers.backend()
    third = World(health=workers.health, worker=2, loop=workers.loop)
    try:
        fleet = bounded(backend.port, max_connections=4)
        one, two = await workers.serve_both(fleet)
        held = [await workers.client(port) for port in (one, one, two, two)]
        for client in held:
            await client.send(make_request("/"))
        for call in await backend.calls(4):
            call.reply()
        for client in held:
            assert (await client.response()).status == 200
        for each in (workers, workers.other):
            await rest(each, 2)
        client = await third.client(await third.serve(fleet))
        await client.send(make_request("/"))
        await third.until(lambda: third.asked)
        for lender in (workers.engine, workers.other.engine):  # as the agent tells all others
            lender.release_connections(CLUSTER, 2)
        (await backend.call()).reply()
        assert (await client.response()).status == 200
        await workers.settle()
        assert len(backend.open) == 4
        await third.finish()
    finally:
        third.close()


async def test_http2_moves_when_its_requests_have_ended(workers: Workers) -> None:
    backend = await start(workers)
    fleet = bounded(backend.port, protocol="h2", max_connections=1)
    one, two = await workers.serve_both(fleet)
    first, ask = await begin(workers, backend, one)
    second = await workers.client(two)
    await second.send(make_request("/"))
    await workers.until(
        lambda: len(workers.other.asked) > 2
    )  # again and again, for one that is idle
    waits = await workers.client(one)
    await waits.send(make_request("/"))  # its own worker wants it back, and comes second
    await workers.until(lambda: workers.cluster(CLUSTER)["pending"] == 1)
    assert len(backend.links) == 1
    ask.reply(b"x")
    assert (await first.response()).status == 200
    ask = await backend.ask()
    assert len(backend.links) == 2
    await workers.until(lambda: backend.links[0].lost)
    ask.reply(b"x")
    assert (await second.response()).status == 200
    (await backend.ask()).reply(b"x")
    assert (await waits.response()).status == 200


async def test_http2_that_is_idle_moves_at_once(workers: Workers) -> None:
    backend = await start(workers, answer=lambda ask: ask.reply(b"x"))
    one, two = await workers.serve_both(bounded(backend.port, protocol="h2", max_connections=1))
    for port in (one, two, one, two):
        assert (await (await workers.client(port)).get()).status == 200
    assert len(backend.links) == 4
    assert len([link for link in backend.links if not link.lost]) == 1


async def test_a_place_is_kept_while_a_connection_is_made(workers: Workers) -> None:
    """Who waits for it was let through: others that come meanwhile take nothing from it."""
    backend = await start(workers, silent=True)
    one, two = await workers.serve_both(bounded(backend.port, protocol="h2", max_requests=1))
    first, free = await workers.client(one), await workers.client(two)
    await first.send(make_request("/"))
    await workers.until(lambda: len(backend.links) == 1)
    await free.send(make_request("/free"))  # which has no bound, and counts
    await workers.until(lambda: len(backend.links) == 2)
    backend.silent = False
    for link in backend.links:
        link.send()
    for _ in range(2):
        (await backend.ask()).reply(b"x")
    assert (await first.response()).status == (await free.response()).status == 200


async def test_cancels_under_a_breaker(world: World) -> None:
    """A connection that was cancelled on too often is replaced where the breaker lets there be one more, and not else."""
    for most, links in ((1, 1), (2, 2)):
        backend = await start(world)
        world.apply(bounded(backend.port, protocol="h2", max_connections=most))
        port = await world.listen()
        stays, ask = await begin(world, backend, port)
        for _ in range(101 if most == 1 else 130):
            await leave(world, backend, port)
        later, last = await begin(world, backend, port)
        assert len(backend.links) == links
        assert max(resets(link) for link in backend.links) <= 200
        for one, client in ((ask, stays), (last, later)):
            one.reply(b"x")
            assert (await client.response()).status == 200
    assert world.counters["upstream_http2_retired"] == 1
