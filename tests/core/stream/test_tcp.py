"""Connections of TCP listeners: bytes both ways, both ends of both directions, backpressure, who is told what when one breaks."""

from __future__ import annotations

import asyncio
import os
import socket
import zlib

import pytest

from core.stream.streams import (
    LISTENER,
    Line,
    Place,
    connect,
    echo,
    is_refused,
    one_cluster,
    stream_fleet,
    stream_listener,
    stream_route,
)
from core.world import World
from edgefast import ir


async def place(world: World, *settings: object) -> Place:
    made = await Place(*settings).start()  # type: ignore[arg-type]
    world.keep(made)
    return made


async def passed(world: World, backend: Place, *parts: ir.Listener | ir.StreamRoute) -> int:
    """Pass connections on to a backend; the port for clients."""
    world.apply(stream_fleet(one_cluster(backend.port), *parts))
    return await world.listen_stream()


async def test_bytes_go_both_ways_and_each_end_by_itself(world: World) -> None:
    backend = await place(world)
    client = await connect(world, await passed(world, backend))
    there = await backend.next()
    await client.send(b"hello")
    assert await there.take(5) == b"hello"
    client.end()
    assert await there.rest() == b""  # the end has come through, and the other direction is open
    await there.send(b"still here")
    assert await client.take(10) == b"still here"
    there.end()
    assert await client.rest() == b""
    (line,) = await ended(world)
    assert (line["end"], line["bytes_received"], line["bytes_sent"]) == ("done", 5, 10)
    assert (line["protocol"], line["route"], line["tries"]) == ("TCP", "TCPRoute ns/db", 1)
    assert line["endpoint"] == f"127.0.0.1:{backend.port}" and line["listener"] == LISTENER


async def ended(world: World) -> list[dict[str, object]]:
    await world.until(lambda: world.engine.open_connections == 0)
    return world.lines()


async def test_the_backend_may_speak_first_and_end_first(world: World) -> None:
    backend = await place(world)
    client = await connect(world, await passed(world, backend))
    there = await backend.next()
    await there.send(b"220 ready\r\n")
    there.end()
    assert await client.rest() == b"220 ready\r\n"
    await client.send(b"thanks")
    client.end()
    assert await there.rest() == b"thanks"


async def test_bytes_that_came_before_the_backend_are_the_first(world: World) -> None:
    backend = await place(world)
    port = await passed(world, backend)
    sock = socket.create_connection(("127.0.0.1", port))
    world.hold(sock)
    sock.sendall(b"early")
    sock.shutdown(socket.SHUT_WR)  # all of it, and its end
    there = await backend.next()
    assert await there.rest() == b"early"
    there.end()


@pytest.mark.parametrize("size", [1, 70_000, 9_000_000])
async def test_a_stream_comes_back_whole(world: World, size: int) -> None:
    client = await connect(world, await passed(world, await place(world, echo)))
    data = os.urandom(size)

    async def send() -> None:
        await client.send(data)
        client.end()

    sending = asyncio.ensure_future(send())
    assert zlib.crc32(await client.rest()) == zlib.crc32(data)
    await sending
    assert world.counters["stream_received_bytes"] == size
    assert world.counters["stream_sent_bytes"] == size


async def test_who_does_not_read_makes_the_other_side_wait(world: World) -> None:
    backend = await place(world)
    client = await connect(world, await passed(world, backend), limit=1024)
    there = await backend.next()
    there.writer.transport.set_write_buffer_limits(high=0)
    sent = 0
    with pytest.raises(TimeoutError):
        while True:
            there.writer.write(bytes(65536))
            async with asyncio.timeout(0.5):
                await there.writer.drain()
            sent += 65536
    assert sent < 32 << 20  # buffers of the kernel, and a bound of ours
    there.end()
    assert len(await client.rest()) >= sent
    client.end()


async def test_a_reset_goes_on_after_all_that_came_before_it(world: World) -> None:
    backend = await place(world)
    client = await connect(world, await passed(world, backend))
    there = await backend.next()
    await there.send(b"the last words")
    assert await client.take(14) == b"the last words"
    there.reset()
    assert await client.is_reset()
    assert [line["end"] for line in await ended(world)] == ["backend_reset"]


async def test_a_client_that_is_gone_resets_its_backend(world: World) -> None:
    backend = await place(world)
    client = await connect(world, await passed(world, backend))
    there = await backend.next()
    client.reset()
    assert await there.is_reset()
    assert [line["end"] for line in await ended(world)] == ["client_reset"]


async def test_silence_ends(world: World) -> None:
    backend = await place(world)
    client = await connect(world, await passed(world, backend, stream_listener(idle_timeout=100)))
    there = await backend.next()
    for _ in range(5):
        await client.send(b"x")
        assert await there.take(1) == b"x"
        await asyncio.sleep(0.05)
    assert await client.is_reset()
    assert await there.is_reset()
    assert [line["end"] for line in await ended(world)] == ["idle_timeout"]


async def test_connections_go_on_when_their_tables_change_and_go(world: World) -> None:
    backend, other = await place(world, echo), await place(world)
    port = await passed(world, backend)
    client = await connect(world, port)
    await client.send(b"a")
    assert await client.take(1) == b"a"
    world.apply(stream_fleet(one_cluster(other.port)))
    await client.send(b"b")
    assert await client.take(1) == b"b"
    late = await connect(world, port)
    assert await other.next()
    late.close()
    world.apply(ir.Fleet(name="standalone"))
    await client.send(b"c")
    assert await client.take(1) == b"c"
    refused = await connect(world, port)
    assert await refused.rest() == b""
    client.end()
    assert await client.rest() == b""


async def test_the_end_of_a_drain_resets_what_is_left(world: World) -> None:
    backend = await place(world)
    client = await connect(world, await passed(world, backend))
    there = await backend.next()
    world.engine.drain()
    assert world.engine.old_connections == 1
    await client.send(b"x")
    assert await there.take(1) == b"x"
    world.engine.close(0.05)
    assert await client.is_reset()
    assert [line["end"] for line in world.lines()] == ["drained"]


async def test_shares_have_their_weight(world: World) -> None:
    first, second = await place(world), await place(world)
    shares = (
        ir.StreamBackend(cluster="service/ns/a/1", weight=3),
        ir.StreamBackend(cluster="service/ns/b/1", weight=1),
        ir.StreamBackend(cluster="service/ns/none/1", weight=0),
    )
    world.apply(
        stream_fleet(
            stream_route(*shares),
            one_cluster(first.port, name="service/ns/a/1"),
            one_cluster(second.port, name="service/ns/b/1"),
        )
    )
    port = await world.listen_stream()
    clients: list[Line] = [await connect(world, port) for _ in range(8)]
    await world.until(lambda: first.count + second.count == 8)
    assert (first.count, second.count) == (6, 2)
    for client in clients:
        client.close()


async def test_a_share_without_backend_is_refused(world: World) -> None:
    world.apply(stream_fleet(stream_route(ir.StreamBackend(cluster="", weight=1))))
    assert await is_refused(world, await world.listen_stream())
    world.apply(stream_fleet(stream_route(ir.StreamBackend(cluster="x", weight=0))))
    assert await is_refused(world, await world.listen_stream())
    assert [line["end"] for line in await ended(world)] == ["no_backend"] * 2
    assert world.counters["stream_refused_route"] == 2
