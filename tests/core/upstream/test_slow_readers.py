"""Clients that read their answers slowly: what they may hold of a cluster's connections, and who gives way."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from core.apart import apart, shift
from core.backend import Backend, Call, make_response
from core.client import Client, make_request
from core.fleets import CLUSTER, ROW, make_cluster, make_fleet, make_listener
from core.upstream.slow import HEAD, post
from core.world import World

LARGE = 2_000_000  # bytes: more than sockets of these sizes hold


def serve(call: Call) -> bytes:
    return make_response(b"x" * LARGE if call.path == "/large" else b"small")


async def open_site(world: World, backend: Backend, most: int, **http: Any) -> int:
    """A route to a cluster of so many connections; what is sent to clients lies in small buffers."""
    cluster = make_cluster(backend.port, max_connections=most, max_pending=4)
    world.apply(make_fleet(make_listener(**http), cluster))
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # of what it accepts, too
    return await world.listen(sock=listening)


def slow(world: World) -> int:
    """A cluster is made when it is first asked for."""
    return sum(int(one["slow_answers"]) for one in world.engine.dump()["clusters"])


async def begin(world: World, port: int) -> Client:
    """Ask for a large answer, and do not read it."""
    before = slow(world) + world.counters["answers_gave_way"]
    client = await world.client(port, receive_buffer=4096)
    await client.send(make_request("/large"))
    await world.until(lambda: slow(world) + world.counters["answers_gave_way"] > before)
    return client


async def take(client: Client, size: int) -> None:
    """Read so many bytes."""
    end = client.received + size
    while client.received < end:
        assert await client.receive()


async def small(world: World, port: int) -> None:
    client = await world.client(port)
    assert (await client.get("/small")).body == b"small"
    client.close()


async def test_slow_readers_leave_room_for_others(world: World) -> None:
    """However many there are, whoever else asks gets a connection at once."""
    backend = await world.backend(serve)
    port = await open_site(world, backend, 8)
    for _ in range(24):
        await begin(world, port)
    for _ in range(10):
        await small(world, port)
    assert slow(world) <= 8
    assert 16 <= world.counters["answers_gave_way"] <= 26
    assert world.counters["pending_refused"] == 0
    cut = [line for line in world.lines() if line["path"] == "/large"]
    assert {(line["status"], line["flags"]) for line in cut} == {(200, "SR")}


@apart(clock=True)
async def test_while_nobody_waits_nobody_is_cut(world: World) -> None:
    """Not even one that reads nothing for minutes, while all connections are held so."""
    backend = await world.backend(serve)
    port = await open_site(world, backend, 4)
    clients = [await begin(world, port) for _ in range(4)]
    for _ in range(4):
        shift(60)
        await world.turns()
    assert world.counters["answers_gave_way"] == 0
    for client in clients:
        assert len((await client.response()).body) == LARGE
    await small(world, port)


@apart(clock=True)
async def test_who_reads_slowly_but_steadily_goes_last(world: World) -> None:
    """A phone's download goes on, though requests wait and its queue empties by steps of many seconds."""
    backend = await world.backend(serve)
    port = await open_site(world, backend, 4, answer_rate=1000)
    phone = await begin(world, port)
    for _ in range(6):
        silent = [await begin(world, port) for _ in range(3)]
        for _ in range(5):
            shift(1)
            await take(phone, 5000)
        await small(world, port)
        assert world.counters["answers_gave_way"] > 0
        for client in silent:
            client.reset()
        await world.until(lambda: slow(world) <= 1)
    while phone.received < LARGE:
        await take(phone, 1)


@apart(clock=True)
async def test_those_behind_the_rate_give_way_within_their_share(world: World) -> None:
    """Where requests wait because others are busy."""
    backend = await world.backend(lambda call: None if call.path == "/wait" else serve(call))
    port = await open_site(world, backend, 4, answer_share=100)
    steady, silent = await begin(world, port), await begin(world, port)
    busy = [await world.client(port) for _ in range(2)]
    for client in busy:
        await client.send(make_request("/wait"))
    calls = await backend.calls(2)
    waiting = await world.client(port)
    await waiting.send(make_request("/small"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    await world.turns()
    assert world.counters["answers_gave_way"] == 0, "a second is not over"
    await take(steady, 20_000)
    shift(1.2)
    assert (await waiting.response()).body == b"small"
    assert world.counters["answers_gave_way"] == 1
    assert world.counters.row(ROW)["requests_2xx"] == 2, "the one that was cut, and the small one"
    while steady.received < LARGE:
        await take(steady, 1)
    for call in calls:
        call.reply()
    for client in busy:
        assert (await client.response()).status == 200
    silent.close()


async def test_without_a_rate_nobody_is_cut(world: World) -> None:
    backend = await world.backend(serve)
    port = await open_site(world, backend, 2, answer_rate=0)
    readers = [await world.client(port, receive_buffer=4096) for _ in range(2)]
    for client in readers:
        await client.send(make_request("/large"))
    waiting = await world.client(port)
    await waiting.send(make_request("/small"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    assert slow(world) == 0
    for client in readers:
        assert len((await client.response()).body) == LARGE
    assert (await waiting.response()).body == b"small"
    assert world.counters["answers_gave_way"] == 0


async def test_what_bodies_hold_is_not_theirs(world: World) -> None:
    """Both kinds of slow clients together leave room, too."""
    backend = await world.backend(serve)
    port = await open_site(world, backend, 8, body_start=10)
    posters = [await post(world, port, HEAD % 100_000 + b"x" * 10) for _ in range(6)]
    await world.until(lambda: world.cluster(CLUSTER)["bodies"] == 6)
    readers = [await begin(world, port) for _ in range(4)]
    for _ in range(5):
        await small(world, port)
    assert world.cluster(CLUSTER)["bodies"] == 6
    assert world.counters["answers_gave_way"] >= 3
    for client in (*posters, *readers):
        client.reset()


async def test_a_tunnel_is_no_answer(world: World) -> None:
    """It is held for as long as both sides like, whoever reads."""
    backend = await world.backend(lambda call: None if call.path == "/tunnel" else serve(call))
    port = await open_site(world, backend, 1)
    client = await world.client(port, receive_buffer=4096)
    upgrade = (("connection", "upgrade"), ("upgrade", "echo"))
    await client.send(make_request("/tunnel", headers=upgrade))
    call = await backend.call()
    call.send(b"HTTP/1.1 101 Go\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n" + b"x" * LARGE)
    await world.until(lambda: world.counters["downstream_bytes_sent"] > 1000)
    waiting = await world.client(port)
    await waiting.send(make_request("/small"))
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    await asyncio.sleep(0)
    assert (slow(world), world.counters["answers_gave_way"]) == (0, 0)
    client.reset()
    assert (await waiting.response()).body == b"small"
