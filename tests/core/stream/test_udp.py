"""Datagrams of UDP listeners: sessions by client, answers to who asked alone, endpoints that go."""

from __future__ import annotations

import asyncio
import socket

import pytest

from core.fleets import CLUSTER
from core.stream.datagrams import ask, backend, client, passing, take_from
from core.stream.streams import (
    one_cluster,
    stream_fleet,
    stream_listener,
    stream_route,
)
from core.world import World
from edgefast import ir


async def test_an_answer_comes_from_where_it_was_asked(world: World) -> None:
    there = await backend(world, b"re:")
    port = await passing(world, there.port, session_timeout=300)
    one, two = client(world, port), client(world, port)
    assert await ask(world, one, b"a") == b"re:a"
    assert await ask(world, two, b"b") == b"re:b"
    assert await ask(world, one, b"c") == b"re:c"
    assert [data for data, _ in there.got] == [b"a", b"b", b"c"]
    assert there.got[0][1] == there.got[2][1] != there.got[1][1]  # a socket for each session
    assert world.counters["stream_sessions_active"] == 2
    await world.until(lambda: world.engine.open_connections == 0)
    first, second = sorted(world.lines(), key=lambda line: -int(line["datagrams_received"]))
    assert (first["protocol"], first["end"], first["client"]) == (
        "UDP",
        "idle_timeout",
        "127.0.0.1",
    )
    assert (first["datagrams_received"], first["datagrams_sent"]) == (2, 2)
    assert (second["bytes_received"], second["bytes_sent"]) == (1, 4)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_a_port_of_a_client_towards_several_of_our_addresses(world: World, host: str) -> None:
    there = await backend(world, b"")
    world.apply(stream_fleet(stream_listener(protocol="UDP"), one_cluster(there.port)))
    port = await world.listen_datagrams(host=host)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    world.hold(sock)
    asked = [f"127.0.0.{1 + number % 3}" for number in range(12)]
    for number, address in enumerate(asked):
        sock.sendto(b"%d" % number, (address, port))
    got = {}
    async with asyncio.timeout(20):
        for _ in asked:
            data, origin = await take_from(world, sock)
            got[int(data)] = origin
    assert got == {number: (address, port) for number, address in enumerate(asked)}
    assert len({addr for _, addr in there.got}) == 3  # a session for each
    assert world.counters["stream_sessions_active"] == 3


@pytest.mark.parametrize("size", [1, 1400, 9000, 65507])
async def test_a_datagram_stays_one(world: World, size: int) -> None:
    there = await backend(world)
    sock = client(world, await passing(world, there.port))
    assert await ask(world, sock, bytes(size)) == bytes(size)


async def test_many_at_once_and_several_answers(world: World) -> None:
    there = await backend(world, b"", 3)
    sock = client(world, await passing(world, there.port))
    for number in range(50):
        sock.send(b"%d" % number)
    got = [await world.loop.sock_recv(sock, 100) for _ in range(150)]
    assert sorted(got) == sorted([b"%d" % (number // 3) for number in range(150)])
    assert world.counters["stream_datagrams_received"] == 50
    assert world.counters["stream_datagrams_sent"] == 150


@pytest.mark.parametrize("mapped", [False, True])
async def test_what_is_too_large_for_its_way_is_lost_alone(world: World, mapped: bool) -> None:
    """IPv6 takes 20 bytes more than IPv4 does: here the client's side does, there the backend's."""
    near, far = ("127.0.0.1", "::1") if mapped else ("::1", "127.0.0.1")
    there = await backend(world, None, host=far)
    cluster = ir.Cluster(name=CLUSTER, endpoints=(ir.Endpoint(address=far, port=there.port),))
    world.apply(stream_fleet(stream_listener(protocol="UDP"), cluster))
    sock = client(world, await world.listen_datagrams(host=near), near, near)
    large = bytes(65520)
    for data in (b"1", b"2") if mapped else (b"1", large, b"2"):
        sock.send(data)
    await world.until(lambda: len(there.got) == 2, seconds=5)
    assert [data for data, _ in there.got] == [b"1", b"2"]
    for data in (b"a", large, b"b") if mapped else (b"a", b"b"):
        there.transport.sendto(data, there.got[0][1])
    async with asyncio.timeout(5):
        assert await world.loop.sock_recv(sock, 65536) == b"a"
        assert await world.loop.sock_recv(sock, 65536) == b"b"
    assert world.counters["stream_datagrams_dropped"] == 1
    assert world.counters["stream_received_bytes"] == (2 if mapped else 65522)
    assert world.counters["stream_sent_bytes"] == 2


async def test_nobody_else_speaks_to_a_client(world: World) -> None:
    there = await backend(world, None)
    port = await passing(world, there.port)
    sock = client(world, port)
    sock.send(b"x")
    await world.until(lambda: there.got)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    world.hold(stranger)
    stranger.sendto(b"forged", there.got[0][1])  # not from the session's backend
    stranger.sendto(b"y", ("127.0.0.1", port))
    await world.until(lambda: len(there.got) == 2)
    there.transport.sendto(b"true", there.got[0][1])
    async with asyncio.timeout(20):
        assert await world.loop.sock_recv(sock, 100) == b"true"


async def test_sessions_go_on_when_tables_change(world: World) -> None:
    first, second = await backend(world, b"1"), await backend(world, b"2")
    port = await passing(world, first.port)
    sock = client(world, port)
    assert await ask(world, sock, b"a") == b"1a"
    listener = stream_listener(protocol="UDP")
    both = one_cluster(first.port, second.port)
    world.apply(stream_fleet(listener, both))
    assert await ask(world, sock, b"b") == b"1b"
    first.word = None
    sock.send(b"c")
    await world.until(lambda: len(first.got) == 3)
    world.apply(stream_fleet(listener, one_cluster(second.port)))  # its endpoint is gone
    assert await ask(world, sock, b"d") == b"2d"
    first.transport.sendto(
        b"late", first.got[2][1]
    )  # ... and what it was asked still gets its answer
    async with asyncio.timeout(20):
        assert await world.loop.sock_recv(sock, 100) == b"late"


async def test_each_of_several_questions_gets_its_answer_when_the_endpoint_goes(
    world: World,
) -> None:
    first, second = await backend(world, None), await backend(world, b"2")
    sock = client(world, await passing(world, first.port))
    for data in (b"a", b"b"):
        sock.send(data)
    await world.until(lambda: len(first.got) == 2)
    first.transport.sendto(b"re:a", first.got[0][1])  # an answer to one of them
    async with asyncio.timeout(20):
        assert await world.loop.sock_recv(sock, 100) == b"re:a"
    world.apply(stream_fleet(stream_listener(protocol="UDP"), one_cluster(second.port)))
    assert await ask(world, sock, b"c") == b"2c"
    first.transport.sendto(b"re:b", first.got[1][1])
    async with asyncio.timeout(20):
        assert await world.loop.sock_recv(sock, 100) == b"re:b"


async def test_a_port_that_closes_waits_for_the_answer_to_each_question(world: World) -> None:
    there = await backend(world, None)
    sock = client(world, await passing(world, there.port))
    for data in (b"a", b"b"):
        sock.send(data)
    await world.until(lambda: len(there.got) == 2)
    for number, left in enumerate((1, 0)):
        there.transport.sendto(b"%d" % number, there.got[0][1])
        async with asyncio.timeout(20):
            assert await world.loop.sock_recv(sock, 100) == b"%d" % number
        if left:
            world._accepting[-1].stop()
        await world.until(lambda left=left: world.engine.open_connections == left)


async def test_an_endpoint_that_refuses_is_left_for_another(world: World) -> None:
    there = await backend(world, b"ok")
    closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    closed.bind(("127.0.0.1", 0))
    gone = closed.getsockname()[1]
    closed.close()
    port = await passing(world, gone, there.port)
    for _ in range(12):
        sock = client(world, port)
        for _ in range(50):
            sock.send(b"?")
            try:
                async with asyncio.timeout(0.5):
                    assert await world.loop.sock_recv(sock, 100) == b"ok?"
                break
            except TimeoutError:
                continue
        else:
            raise AssertionError("never answered")
    assert world.counters["upstream_connect_failures"] > 0


async def test_nobody_to_give_it_to(world: World) -> None:
    world.apply(
        stream_fleet(
            stream_listener(protocol="UDP"), stream_route(ir.StreamBackend(cluster="", weight=1))
        )
    )
    sock = client(world, await world.listen_datagrams())
    sock.send(b"x")
    await world.until(lambda: world.counters["stream_refused_route"] == 1)
    assert world.engine.open_connections == 0


async def test_two_protocols_on_one_port_number(world: World) -> None:
    there = await backend(world, b"udp:")
    tcp = stream_listener("l/tcp")
    udp = stream_listener("l/udp", protocol="UDP")
    world.apply(
        stream_fleet(
            tcp,
            udp,
            stream_route("none", listener="l/tcp"),
            stream_route(listener="l/udp"),
            one_cluster(there.port),
        )
    )
    port = await world.listen_datagrams()
    assert await ask(world, client(world, port), b"x") == b"udp:x"


async def test_a_port_that_closes_gives_the_answers_that_are_awaited(world: World) -> None:
    there = await backend(world, None)
    port = await passing(world, there.port)
    sock = client(world, port)
    sock.send(b"x")
    await world.until(lambda: there.got)
    world._accepting[-1].stop()
    assert world.engine.open_connections == 1
    there.transport.sendto(b"answer", there.got[0][1])
    async with asyncio.timeout(20):
        assert await world.loop.sock_recv(sock, 100) == b"answer"
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["end"] for line in world.lines()] == ["drained"]
