"""Long-lived streams of one address hold as many connections of a backend as they can, and other addresses are still served."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import Any

import pytest

from core.apart import apart, shift
from core.backend import Backend, Call, make_response
from core.client import Client, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.asking import Asker
from core.world import World
from edgefast import ir

OTHER = "127.0.0.2"
MOST = 8  # connections of the backend; six of them are for streams
SHARE = 6
SWITCH = b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n"
UPGRADE = make_request("/chat", headers=(("connection", "upgrade"), ("upgrade", "chat")))
EVENTS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nevent\r\n"


def answer(call: Call) -> bytes | None:
    if call.path == "/small":
        return make_response(b"small")
    if call.path == "/events":
        return EVENTS
    key = call.message.value(b"sec-websocket-key")
    return (
        SWITCH.replace(b"chat", b"websocket\r\nsec-websocket-accept: " + accept(key))
        if key
        else SWITCH
    )


def accept(key: bytes) -> bytes:
    return base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())


async def open_site(world: World, most: int = MOST, pending: int = 64, **http: Any) -> int:
    backend: Backend = await world.backend(answer)
    cluster = make_cluster(backend.port, max_connections=most, max_pending=pending)
    return await world.serve(make_fleet(make_listener(**http), cluster))


async def tunnel(world: World, port: int, source: str = "127.0.0.1") -> tuple[int, Client]:
    """Request a tunnel; return the status and its client."""
    client = await world.client(port, source=source)
    return (await client.ask(UPGRADE)).status, client


async def events(world: World, port: int, source: str = "127.0.0.1") -> Client:
    """An answer that continues after its client has read the beginning."""
    client = await world.client(port, source=source)
    await client.send(make_request("/events"))
    data = b""
    while b"event" not in data:
        data += await client.receive()
    return client


def gave_way(world: World) -> int:
    return world.counters["streams_gave_way"]


def held(world: World) -> int:
    return int(world.cluster(CLUSTER)["long_streams"])


async def small(world: World, port: int, source: str = OTHER) -> None:
    client = await world.client(port, source=source)
    assert (await client.get("/small")).body == b"small"
    client.close()


async def test_tunnels_of_one_address_leave_connections_to_others(world: World) -> None:
    """Requests of others are answered at once, and they get as many tunnels."""
    port = await open_site(world)
    crowd = [await tunnel(world, port) for _ in range(2 * MOST)]
    assert [status for status, _ in crowd] == [101] * SHARE + [503] * (2 * MOST - SHARE)
    await small(world, port)
    others = [await tunnel(world, port, OTHER) for _ in range(SHARE)]
    assert [status for status, _ in others] == [101] * (SHARE // 2) + [503] * (SHARE // 2)
    for _, client in crowd[: SHARE // 2]:
        assert await client.ending() == "closed"
    assert (gave_way(world), held(world)) == (SHARE // 2, SHARE)
    await small(world, port)
    assert {line["flags"] for line in world.lines() if line["status"] == 101} == {"SR"}
    refused = [line for line in world.lines() if line["status"] == 503]
    assert {line["flags"] for line in refused} == {"UO"}
    others[0][1].close()  # a place is free again
    await world.until(lambda: held(world) == SHARE - 1)
    assert (await tunnel(world, port, OTHER))[0] == 101


async def test_a_tunnel_that_carries_something_outlasts_one_that_does_not(world: World) -> None:
    port = await open_site(world, stream_idle_timeout=100_000)
    crowd = [await tunnel(world, port) for _ in range(SHARE)]
    await asyncio.sleep(0.02)  # a millisecond tells them apart
    for _, client in crowd[:3]:
        before = world.counters["downstream_bytes_received"]
        await client.send(b"x")
        await world.until(
            lambda before=before: world.counters["downstream_bytes_received"] > before
        )
    assert (await tunnel(world, port, OTHER))[0] == 101
    assert await crowd[3][1].ending() == "closed"


async def test_streams_of_http2(world: World) -> None:
    """Tunnels of an address count together, over all its connections."""
    port = await open_site(world)
    fields = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), (b":scheme", b"http")]
    fields += [(b":authority", b"test"), (b":path", b"/chat"), (b"sec-websocket-version", b"13")]
    for _ in range(4):
        asker = Asker(await world.client(port))
        for _ in range(4):
            number = asker.frames.get_next_available_stream_id()
            asker.frames.send_headers(number, fields)
        await asker.client.send(asker.frames.data_to_send())
    await world.until(lambda: len(world.lines()) == 16 - SHARE)
    assert held(world) == SHARE
    await small(world, port)
    assert (await tunnel(world, port, OTHER))[0] == 101


async def wait_on(world: World, seconds: float) -> None:
    """Advance the time of waiting requests."""
    for _ in range(round(seconds * 10)):
        shift(0.1)
        await world.turns(50)


@apart(clock=True)
async def test_answers_that_go_on_give_way_to_those_who_wait(world: World) -> None:
    """Only an answer that has paused for long ends, and only for another address."""
    backend: Backend = await world.backend()
    cluster = make_cluster(backend.port, max_connections=MOST)
    port = await world.serve(make_fleet(make_listener(), cluster))
    crowd, calls = [], []
    for _ in range(MOST):
        crowd.append(await world.client(port))
        await crowd[-1].send(make_request("/events"))
        calls.append(await backend.call())
        calls[-1].send(EVENTS)
    for client in crowd:
        while b"event" not in await client.receive():
            pass
    shift(1.1)
    await world.until(lambda: held(world) == MOST)
    own = await world.client(port)
    await own.send(make_request("/small"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    await wait_on(world, 6)
    assert gave_way(world) == 0
    for call in calls[1:]:
        call.send(b"5\r\nevent\r\n")
    for client in crowd[1:]:
        await client.receive()
    other = await world.client(port, source=OTHER)
    await other.send(make_request("/small"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 2)
    await wait_on(world, 1)
    (await backend.call()).reply(b"small")
    assert (await other.response()).body == b"small"
    assert gave_way(world) == 1
    await crowd[0].ending()
    for client in (*crowd, own):
        client.reset()


@apart(clock=True)
async def test_one_address_does_not_hold_all_connections_with_answers_in_progress(
    world: World,
) -> None:
    """It loses what it holds above `streamShare`, one answer for each request that waits; requests of its own get nothing."""
    backend: Backend = await world.backend()
    cluster = make_cluster(backend.port, max_connections=MOST)
    port = await world.serve(make_fleet(make_listener(), cluster))
    crowd, calls = [], []
    for _ in range(MOST):
        crowd.append(await world.client(port))
        await crowd[-1].send(make_request("/events"))
        calls.append(await backend.call())
        calls[-1].send(EVENTS)

    async def progress(seconds: float) -> None:
        for _ in range(round(seconds * 5)):
            for call in calls:
                if not call.link.transport.is_closing():
                    call.send(b"5\r\nevent\r\n")
            shift(0.2)
            await world.turns(50)

    await progress(1.2)
    await world.until(lambda: held(world) == MOST)
    own = await world.client(port)
    await own.send(make_request("/small"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    await progress(6)
    assert gave_way(world) == 0
    for number in range(3):
        other = await world.client(port, source=f"127.0.0.{number + 2}")
        await other.send(make_request("/small"))
        await world.until(lambda: world.cluster(CLUSTER)["pending"] == 2)
        await progress(1)
        if number == MOST - SHARE:
            break
        (await backend.call()).send(EVENTS)  # it keeps its connection
        assert b"event" in await other.receive()
    await progress(2)
    assert (gave_way(world), world.cluster(CLUSTER)["pending"]) == (MOST - SHARE, 2)
    for client in (*crowd, own, other):
        client.reset()


@apart(clock=True)
async def test_answers_of_a_proxy_that_names_nobody_stay(world: World) -> None:
    address = ir.ClientAddress(trusted_cidrs=("127.0.0.1/32",))
    port = await open_site(world, client_address=address)
    crowd = [await events(world, port) for _ in range(MOST)]
    shift(1.1)
    await world.until(lambda: held(world) == MOST)
    other = await world.client(port, source=OTHER)
    await other.send(make_request("/small"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    await wait_on(world, 6)
    assert (gave_way(world), held(world)) == (0, MOST)
    for client in (*crowd, other):
        client.reset()


async def test_a_tunnel_that_is_refused_cuts_nothing(world: World) -> None:
    """The port has a stream that could be ended, the backend has none."""
    one, two = await world.backend(answer), await world.backend(answer)
    clusters = [make_cluster(one.port), make_cluster(two.port, name="two", max_connections=1)]
    host = make_host(make_rule(), ("/chat/two", make_rule("two", route="ns/two")))
    port = await world.serve(make_fleet(make_listener(max_streams=4), host, *clusters))
    crowd = [await tunnel(world, port) for _ in range(3)]
    upgrade = UPGRADE.replace(b"/chat", b"/chat/two")
    for source, status in ((OTHER, 101), ("127.0.0.3", 503)):
        client = await world.client(port, source=source)
        assert (await client.ask(upgrade)).status == status
    assert ([status for status, _ in crowd], gave_way(world)) == ([101] * 3, 0)


@apart(clock=True)
async def test_a_short_answer_is_no_stream(world: World) -> None:
    port = await open_site(world)
    client = await events(world, port)
    assert held(world) == 0
    shift(1.1)
    await world.until(lambda: held(world) == 1)
    client.reset()
    await world.until(lambda: held(world) == 0)


@pytest.mark.parametrize("setting", ["max_streams", "address_streams"])
async def test_streams_of_a_port(setting: str, world: World) -> None:
    port = await open_site(world, 64, **{setting: 4})
    crowd = [await tunnel(world, port) for _ in range(5)]
    assert [status for status, _ in crowd] == [101] * 4 + [503]
    others = [(await tunnel(world, port, OTHER))[0] for _ in range(3)]
    assert others == ([101, 101, 503] if setting == "max_streams" else [101] * 3)
    assert gave_way(world) == (2 if setting == "max_streams" else 0)


@apart(clock=True)
async def test_answers_past_a_limit_of_the_port(world: World) -> None:
    """The quietest of that address ends."""
    port = await open_site(world, 64, address_streams=2)
    crowd = [await events(world, port) for _ in range(3)]
    other = await events(world, port, OTHER)
    shift(1.1)
    await world.until(lambda: gave_way(world) == 1 and held(world) == 3)
    for client in (*crowd, other):
        client.reset()


async def test_an_upgrade_that_its_backend_declines_is_no_stream(world: World) -> None:
    port = await open_site(world, 2)
    headers = (("connection", "upgrade"), ("upgrade", "chat"))
    client = await world.client(port)
    for _ in range(3):
        assert (await client.ask(make_request("/small", headers=headers))).body == b"small"
        assert held(world) == 0
    assert (await tunnel(world, port))[0] == 101
