"""A port with a new TLS rule: everything that began under the old one ends within HttpSettings.tls_drain."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core.certificates import Site
from core.client import Client, make_request
from core.fleets import PORT, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker, Fields, Reset
from core.tls_client import TlsClient
from core.world import World

FIELDS: Fields = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":authority", b"a.test"),
    (b":path", b"/"),
]
SWITCH = b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test")


async def over(client: Client) -> None:
    """Read to the end, with or without a reset."""
    try:
        while await client.receive():
            pass
    except OSError:
        pass


@pytest.mark.parametrize("kind", ["request", "answer", "websocket", "h2"])
async def test_what_is_in_flight_ends_within_the_bound(world: World, site: Site, kind: str) -> None:
    backend = await world.backend()
    http2 = kind == "h2"  # by prior knowledge: whether there was TLS before makes no difference
    listener = make_listener(protocol="HTTP" if http2 else "HTTPS", tls_drain=60)
    world.apply(make_fleet(listener, make_cluster(backend.port)))
    port = await world.listen(PORT, None if http2 else site.choose)
    if http2:
        client = await world.client(port)
    else:
        client = await TlsClient.open(port, site.client(), "a.test")
        world.attend(client)
    waiting: list[asyncio.Task[object]] = []
    if http2:
        waiting.append(asyncio.ensure_future(Asker(client).ask(FIELDS)))
    elif kind == "request":
        head = make_request(method="POST", host="a.test", headers=[("content-length", "9")])
        await client.send(head + b"abc")
    else:
        upgrade = [("connection", "upgrade"), ("upgrade", "websocket")]
        headers = upgrade if kind == "websocket" else []
        await client.send(make_request(host="a.test", headers=headers))
    if kind == "request":
        await world.until(lambda: world.engine.active == 1)
    else:
        call = await backend.call()
        if kind == "answer":
            call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nx")
        if kind == "websocket":
            call.send(SWITCH)
            assert (await client.response()).status == 101
    began = asyncio.get_running_loop().time()
    world._accepting[-1].retire()
    await world.turns()
    assert world.engine.open_connections == 1  # it has its time
    for one in waiting:
        with pytest.raises((Reset, OSError, AssertionError, asyncio.IncompleteReadError)):
            await one
    if not waiting:
        await over(client)
    await world.until(lambda: world.engine.open_connections == 0)
    assert asyncio.get_running_loop().time() - began >= 0.05


async def test_a_second_rule_gives_no_more_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With any number of changes the first one counts, and none of them starts a sweep of all connections."""
    backend = await world.backend()
    world.apply(make_fleet(make_listener(tls_drain=200), make_cluster(backend.port)))
    client = await world.client(await world.listen(PORT))
    await client.send(make_request(host="a.test"))
    await backend.call()
    world._accepting[-1].retire()
    sweeps: list[float] = []
    call_later = world.loop.call_later

    def spy(delay: float, *given: Any, **named: Any) -> asyncio.TimerHandle:
        if delay > 300:
            sweeps.append(delay)
        return call_later(delay, *given, **named)

    monkeypatch.setattr(world.loop, "call_later", spy)
    world.apply(make_fleet(make_listener(tls_drain=600_000), make_cluster(backend.port)))
    for _ in range(3):
        await world.listen(PORT)
        world._accepting[-1].retire()
    await over(client)
    await world.until(lambda: world.engine.open_connections == 0)
    assert sweeps == []


@pytest.mark.parametrize("http2", [False, True], ids=["websocket", "h2"])
async def test_a_port_without_listeners_is_not_under_another_rule(
    world: World, http2: bool
) -> None:
    backend = await world.backend()
    names = {"stays": PORT, "goes": PORT + 1}
    listeners = [make_listener(name, port=port, tls_drain=1) for name, port in names.items()]
    hosts = [make_host(make_rule(), listener=name) for name in names]
    cluster = make_cluster(backend.port)
    world.apply(make_fleet(*listeners, *hosts, cluster))
    stays = await world.client(await world.listen(PORT))
    goes = await world.client(await world.listen(PORT + 1))
    waiting: asyncio.Task[Any] | None = None
    if http2:
        waiting = asyncio.ensure_future(Asker(stays).ask(FIELDS))
        await backend.call()
    else:
        upgrade = [("connection", "upgrade"), ("upgrade", "websocket")]
        await stays.send(make_request(headers=upgrade))
        call = await backend.call()
        call.send(SWITCH)
        assert (await stays.response()).status == 101
    await goes.send(make_request())
    await backend.call()
    world.apply(make_fleet(listeners[1], hosts[1], cluster))  # the first port has no listener now
    world._accepting[-1].retire()
    await over(goes)
    await world.until(lambda: world.engine.open_connections == 1)
    await world.turns()
    assert world.engine.open_connections == 1
    if waiting is not None:
        waiting.cancel()
    else:
        call.send(b"late")
        assert await stays.receive() == b"late"


async def test_a_handshake_under_the_old_rule_is_bounded_as_well(world: World, site: Site) -> None:
    """It ends after the sweep of those that were open before."""
    backend = await world.backend()
    world.apply(
        make_fleet(make_listener(protocol="HTTPS", tls_drain=1), make_cluster(backend.port))
    )
    port = await world.listen(PORT, site.choose)
    late = await world.client(port)
    from core.tls.test_last_requests import Spoken

    spoken = Spoken(late, site.client())
    shaking = asyncio.ensure_future(spoken.shake())
    await world.until(lambda: world.engine.open_connections == 1)
    world._accepting[-1].retire()
    try:
        await shaking
        await spoken.send(
            make_request(method="POST", host="a.test", headers=[("content-length", "9")])
        )
        await spoken.read()
    except OSError:
        pass
    await world.until(lambda: world.engine.open_connections == 0)
