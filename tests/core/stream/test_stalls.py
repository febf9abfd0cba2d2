"""Who is idle, and who is stuck: bytes that are being taken keep a connection, bytes that nobody takes end it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from core.apart import apart, shift
from core.stream.streams import (
    DEADLINE,
    Line,
    Place,
    connect,
    one_cluster,
    stream_fleet,
    stream_listener,
)
from core.world import World

SIZE = 1_000_000  # more than the kernel holds on both sides
SMALL = 200_000  # more than such a client's kernel holds, less than ours and its together


async def say_and_wait(line: Line) -> None:
    await line.send(b"x" * SIZE)
    await line.reader.read()


async def say_little_and_wait(line: Line) -> None:
    await line.send(b"x" * SMALL)
    await line.reader.read()


def narrow_client(world: World, port: int) -> socket.socket:
    """Connected; its kernel holds little."""
    client = socket.socket()
    world.hold(client)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    client.settimeout(DEADLINE)
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    return client


async def flood(line: Line) -> None:
    while True:
        line.writer.write(b"x" * 65536)
        await line.writer.drain()


async def take(world: World, client: socket.socket, size: int) -> int:
    left = size
    while left:
        left -= len(await world.loop.sock_recv(client, left))
    return size


@apart(clock=True)
async def test_bytes_that_are_being_taken_keep_a_connection(world: World) -> None:
    place = await Place(say_and_wait).start()
    world.keep(place)
    world.apply(stream_fleet(stream_listener(idle_timeout=2000), one_cluster(place.port)))
    port = await world.listen_stream()
    client = narrow_client(world, port)
    await take(world, client, 50_000)
    taken = 50_000
    for _ in range(9):
        shift(1.5)
        await asyncio.sleep(0.03)  # a look or two
        taken += await take(world, client, 100_000)
    await take(world, client, SIZE - taken)
    assert world.engine.dump()["streams"] == 1
    shift(10)
    await world.until(lambda: world.engine.open_connections == 0)
    assert [(line["end"], line["bytes_sent"]) for line in world.lines()] == [("idle_timeout", SIZE)]


@apart(clock=True)
async def test_a_client_that_takes_nothing_is_stuck(world: World) -> None:
    """However much it says meanwhile."""
    place = await Place(flood).start()
    world.keep(place)
    world.apply(stream_fleet(stream_listener(idle_timeout=0), one_cluster(place.port)))
    client = await connect(world, await world.listen_stream(), limit=1024)
    seconds = await until_it_ends(world, lambda: client.writer.write(b"y"))
    assert 29 <= seconds <= 60


@apart(clock=True)
async def test_bytes_that_nobody_takes_for_idle_timeout_are_stuck(world: World) -> None:
    place = await Place(say_little_and_wait).start()
    world.keep(place)
    world.apply(stream_fleet(stream_listener(idle_timeout=40_000), one_cluster(place.port)))
    narrow_client(world, await world.listen_stream())
    await world.until(lambda: world.counters["stream_sent_bytes"] == SMALL)
    seconds = await until_it_ends(world)
    assert (
        65 <= seconds <= 125
    )  # silent for 40, and a look in between at which it may have taken some


async def until_it_ends(world: World, word: Callable[[], None] = lambda: None) -> int:
    """Seconds until somebody is found to be stuck; `word` is said every second."""
    seconds = 0
    while not world.lines() and seconds < 200:
        seconds += 1
        word()
        shift(1)
        await asyncio.sleep(0.02)
    assert [line["end"] for line in world.lines()] == ["stalled"]
    return seconds
