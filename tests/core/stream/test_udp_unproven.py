"""What a datagram buys that may have been sent in somebody else's name: so many answers, for so long."""

from __future__ import annotations

import asyncio

from core.stream.datagrams import ask, backend, client, converse, passing
from core.world import World


async def test_answers_do_not_lengthen_the_session_of_who_has_spoken_once(world: World) -> None:
    there = await backend(world, None)
    sock = client(world, await passing(world, there.port, session_timeout=200))
    sock.send(b"x")
    await world.until(lambda: there.got)

    def speak() -> bool:
        there.transport.sendto(b"more", there.got[0][1])
        return bool(world.lines())

    await world.until(speak, seconds=5)
    (line,) = world.lines()
    assert (line["end"], line["datagrams_received"]) == ("idle_timeout", 1)


async def test_answers_of_a_conversation_lengthen_it_for_a_while(world: World) -> None:
    """Not for ever: who is silent may be gone, and never have been who it said."""
    there = await backend(world)
    sock = client(world, await passing(world, there.port, session_timeout=300))
    await converse(world, sock)

    def speak() -> bool:
        there.transport.sendto(b"more", there.got[0][1])
        return bool(world.lines())

    await world.until(speak, seconds=15)
    (line,) = world.lines()
    assert (line["end"], line["datagrams_received"]) == ("idle_timeout", 2)
    assert 600 < line["duration_ms"] < 10_000


async def test_answers_to_one_datagram_are_bounded_in_number(world: World) -> None:
    there = await backend(world, b"", 100)
    sock = client(world, await passing(world, there.port))
    sock.send(b"x")
    await world.until(lambda: world.counters["stream_datagrams_dropped"] == 36, seconds=5)
    assert world.counters["stream_datagrams_sent"] == 64
    sock.send(b"y")  # somebody is there
    await world.until(lambda: world.counters["stream_datagrams_sent"] == 164, seconds=5)


async def test_answers_to_one_datagram_are_bounded_in_bytes(world: World) -> None:
    there = await backend(world, None)
    sock = client(world, await passing(world, there.port))
    sock.send(b"x")
    await world.until(lambda: there.got)
    for number in range(2):
        there.transport.sendto(bytes(60_000), there.got[0][1])
        async with asyncio.timeout(5):
            assert len(await world.loop.sock_recv(sock, 65536)) == 60_000
        assert world.counters["stream_datagrams_sent"] == number + 1
    there.transport.sendto(bytes(60_000), there.got[0][1])
    await world.until(lambda: world.counters["stream_datagrams_dropped"] == 1, seconds=5)
    there.word = b""
    assert await ask(world, sock, b"y") == b"y"
    assert world.counters["stream_sent_bytes"] == 120_001
