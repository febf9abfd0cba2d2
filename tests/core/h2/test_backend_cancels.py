"""Clients that ask and leave: what their cancels may do to a connection that others share."""

from __future__ import annotations

from core.apart import apart, shift
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener
from core.h2.backend import Ask, H2Backend, Link, say
from core.world import World

LEAVES = make_request("/leaves")
MOST = 200  # resets within 30 s after which common servers end a connection


def resets(link: Link) -> int:
    """Streams of it that were reset."""
    return sum(1 for ask in link.asks.values() if ask.reset is not None)


async def leave(world: World, backend: H2Backend, port: int) -> None:
    """Ask, and be gone when the backend has it."""
    client = await world.client(port)
    await client.send(LEAVES)
    ask = await backend.ask()
    client.reset()
    await world.until(lambda: ask.reset is not None or ask.link.lost)


async def test_connections_change_before_a_backend_takes_us_for_an_attacker(world: World) -> None:
    """Whoever else is on one that takes no more goes on there to its end."""
    backend = H2Backend()
    world.keep(await backend.start())
    port = await world.serve(make_fleet(make_listener(), make_cluster(backend.port, protocol="h2")))
    stays = await world.client(port)
    await stays.send(make_request("/stays"))
    kept = await backend.ask()
    for _ in range(350):
        await leave(world, backend, port)
    assert len(backend.links) >= 3
    assert max(resets(link) for link in backend.links) <= MOST
    assert world.counters["upstream_http2_retired"] == len(backend.links) - 1
    assert not kept.link.lost
    kept.reply(b"here")
    assert (await stays.response()).body == b"here"
    await world.until(lambda: kept.link.lost)  # nothing is left for it to do
    assert kept.link.goaway == 0


async def go(world: World, backend: H2Backend, port: int, request: bytes = LEAVES) -> Ask:
    """The same; its reset may come later."""
    before = active(world)
    client = await world.client(port)
    await client.send(request)
    ask = await backend.ask()
    client.reset()
    await world.until(lambda: active(world) <= before)
    return ask


def active(world: World) -> int:
    """Requests that somebody waits for."""
    (endpoint,) = world.cluster(CLUSTER)["endpoints"]
    return int(endpoint["active"])


async def serve(world: World, most: int) -> tuple[H2Backend, int]:
    """A backend that may have so many connections."""
    backend = H2Backend()
    world.keep(await backend.start())
    cluster = make_cluster(backend.port, protocol="h2", max_connections=most)
    return backend, await world.serve(make_fleet(make_listener(body_start=0), cluster))


@apart(clock=True)
async def test_a_connection_without_another_one_paces_its_resets(world: World) -> None:
    """One of eight of its streams waits for the budget; those that others ask for are theirs."""
    backend, port = await serve(world, 1)
    for _ in range(MOST // 2):
        await leave(world, backend, port)
    asks = [await go(world, backend, port) for _ in range(40)]
    waiting = [ask for ask in asks if ask.reset is None]
    assert 0 < len(waiting) <= 100 // 8
    assert len(backend.links) == world.cluster(CLUSTER)["connections"] == 1
    clients = [await world.client(port) for _ in range(80)]
    for client in clients:
        await client.send(make_request("/stays"))
    for _ in clients:
        (await backend.ask()).reply(b"x")
    for client in clients:
        assert (await client.response()).status == 200
    waiting[-1].reply(b"nobody")  # in time: it needs no reset
    await world.turns()
    for _ in range(20):
        shift(1)
        await world.turns()
    await world.until(lambda: all(ask.reset is not None for ask in waiting[:-1]))
    assert waiting[-1].reset is None
    assert world.counters["upstream_http2_retired"] == 0
    assert not backend.links[0].lost


@apart(clock=True)
async def test_a_request_whose_reset_waits_has_no_end(world: World) -> None:
    """A backend would take a part of its body for all of it."""
    backend, port = await serve(world, 1)
    for _ in range(MOST // 2):
        await leave(world, backend, port)
    head = make_request(method="POST", headers=[("content-length", "9")])
    asks = [await go(world, backend, port, head + b"part") for _ in range(12)]
    assert any(ask.reset is None for ask in asks)
    for _ in range(20):
        shift(1)
        await world.turns()
    await world.until(lambda: all(ask.reset == 8 for ask in asks))
    assert not any(ask.ended for ask in asks)


async def test_cancels_leave_others_the_streams_of_a_cluster(world: World) -> None:
    """Requests that last keep one of its connections that takes no more, not all of them but one."""
    backend, port = await serve(world, 3)
    pins = []
    for _ in range(2):
        client = await world.client(port)
        await client.send(make_request("/pin"))
        pins.append((client, await backend.ask()))
        for _ in range(150):
            await go(world, backend, port)
    assert world.counters["upstream_http2_retired"] == 1
    clients = [await world.client(port) for _ in range(150)]
    for client in clients:
        await client.send(make_request("/stays"))
    asks = [await backend.ask() for _ in clients]
    assert len({id(ask.link) for ask in asks}) == 2
    for client, pin in pins:
        assert not pin.link.lost
        pin.reply(b"here")
        assert (await client.response()).body == b"here"
    await world.until(lambda: pins[0][1].link.lost)  # so another one may be next
    for ask in asks:
        ask.reply(b"x")
    for client in clients:
        assert (await client.response()).body == b"x"
    for _ in range(150):
        await go(world, backend, port)
    assert world.counters["upstream_http2_retired"] >= 2


async def test_answers_that_end_their_requests_early_are_no_cancels(world: World) -> None:
    """A few of them: the bound leaves room for what is usual."""
    backend = H2Backend(begun=say(b"early"))
    world.keep(await backend.start())
    port = await world.serve(
        make_fleet(make_listener(body_start=0), make_cluster(backend.port, protocol="h2"))
    )
    for _ in range(20):
        client = await world.client(port)
        await client.send(make_request(method="POST", headers=[("content-length", "9")]))
        assert (await client.response()).body == b"early"
        client.close()
    assert len(backend.links) == 1
