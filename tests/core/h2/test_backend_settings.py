"""What EdgeProxy spec.http2.upstream sets is what a backend sees: SETTINGS, windows, PINGs, connections."""

from __future__ import annotations

import functools

import pytest
from h2.settings import SettingCodes

from core.apart import apart, shift
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_listener
from core.h2.backend import H2Backend, say
from core.world import World
from edgefast import ir


async def start(world: World, backend: H2Backend, **upstream: int) -> int:
    """Serve a backend of HTTP/2 with these settings; the port for clients."""
    world.keep(await backend.start())
    settings = ir.Http2Settings(upstream=ir.Http2Upstream(**upstream))
    listener = make_listener(http2=settings, upstream_idle=3_600_000, route_timeout=3_600_000)
    return await world.serve(make_fleet(listener, make_cluster(backend.port, protocol="h2")))


async def test_windows(world: World) -> None:
    backend = H2Backend(say(b"x"))
    port = await start(
        world, backend, initial_stream_window=131072, initial_connection_window=3_000_000
    )
    assert (await (await world.client(port)).get()).status == 200
    (link,) = backend.links
    settings = link.frames.remote_settings
    assert settings[SettingCodes.INITIAL_WINDOW_SIZE] == 131072
    assert settings[SettingCodes.ENABLE_PUSH] == 0
    assert (
        link.frames.outbound_flow_control_window == 3_000_000 - 1
    )  # less than half is not told of


async def test_a_client_that_takes_nothing_holds_a_window(world: World) -> None:
    """Its backend may send a window more than sockets and buffers take, and others go on."""
    backend = H2Backend(
        lambda ask: ask.reply(bytes(20_000_000) if ask.value(":path") == "/big" else b"y")
    )
    port = await start(world, backend, initial_stream_window=16384)
    slow, other = await world.client(port), await world.client(port)
    await slow.send(make_request("/big"))
    ask = await backend.ask()
    frames = ask.link.frames
    await world.until(lambda: frames.local_flow_control_window(ask.stream) == 0)
    assert (await other.get()).body == b"y"
    assert len((await slow.response()).body) == 20_000_000


@pytest.mark.parametrize(("most", "connections"), [(4, 6), (10, 3), (100, 1)])
async def test_streams_of_a_connection(world: World, most: int, connections: int) -> None:
    """At most so many on one; a further one is made at 80 percent of them."""
    backend = H2Backend()
    port = await start(world, backend, max_concurrent_streams=most)
    clients = [await world.client(port) for _ in range(24)]

    def asked(count: int) -> bool:
        return len(backend.asks) == count

    for number, client in enumerate(clients):
        await client.send(make_request())
        await world.until(functools.partial(asked, number + 1))
    assert max(len(link.asks) for link in backend.links) <= most
    assert connections <= len(backend.links) <= connections + 1
    for ask in backend.asks:
        ask.reply(b"x")
    for client in clients:
        assert (await client.response()).status == 200


@apart(clock=True)
async def test_silence_with_requests_open_is_asked_about(world: World) -> None:
    backend = H2Backend()
    port = await start(world, backend, keepalive_ping=5000)
    client = await world.client(port)
    await client.send(make_request())
    ask = await backend.ask()
    shift(4)
    await world.turns()
    assert backend.pings == 0
    shift(2)
    await world.until(lambda: backend.pings == 1)
    ask.reply(b"x")
    assert (await client.response()).status == 200
    for _ in range(3):  # nobody waits for anything: it may be silent
        shift(6)
        await world.turns()
    assert backend.pings == 1


@apart(clock=True)
async def test_who_does_not_answer_is_gone(world: World) -> None:
    """After 10 s, and its requests with it."""
    backend = H2Backend()
    port = await start(world, backend, keepalive_ping=5000)
    client = await world.client(port)
    await client.send(make_request())
    ask = await backend.ask()
    ask.link.transport.pause_reading()
    shift(6)
    await world.turns()
    shift(11)
    assert (await client.response()).status == 502
    ask.link.transport.resume_reading()
    await world.until(lambda: ask.link.lost)


async def test_no_pings_by_themselves(world: World) -> None:
    backend = H2Backend()
    port = await start(world, backend)
    client = await world.client(port)
    await client.send(make_request())
    (await backend.ask()).reply(b"x")
    assert (await client.response()).status == 200
    assert backend.pings == 0
