"""Places of a UDP listener: who has them, who gives way to whom, and who is refused."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from core.stream.datagrams import ask, ask_again, backend, client, converse, passing
from core.world import World


def ended(world: World, why: str) -> list[dict[str, Any]]:
    return [line for line in world.lines() if line["end"] == why]


async def test_conversations_outlast_a_flood_of_source_ports(world: World) -> None:
    there = await backend(world, b"")
    port = await passing(world, there.port, max_sessions=64)
    kept = [client(world, port, f"127.0.0.{number}") for number in range(2, 10)]
    for sock in kept:
        await converse(world, sock)
    before = {addr for _, addr in there.got}
    for number in range(3000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((f"127.0.{1 + number % 200}.1", 0))
            one.sendto(b"flood", ("127.0.0.1", port))
        if number % 100 == 0:
            await asyncio.sleep(0)
    await world.until(lambda: world.counters["stream_datagrams_received"] >= 2000)
    assert world.counters["stream_sessions_active"] <= 64
    for sock in kept:
        assert await ask_again(world, sock, b"still") == b"still"
    assert {addr for data, addr in there.got if data == b"still"} == before
    fresh = client(world, port, "127.0.0.77")
    assert await ask_again(world, fresh, b"new") == b"new"


async def test_a_flood_of_one_address_of_ours_leaves_places_at_the_others(world: World) -> None:
    there = await backend(world)
    first = await passing(world, there.port, max_sessions=8)
    second = await world.listen_datagrams()
    for number in range(20):
        client(world, first, f"127.0.1.{number + 1}").send(b"flood")
    await world.until(lambda: world.counters["stream_datagrams_received"] == 20)
    async with asyncio.timeout(5):
        assert await ask(world, client(world, second), b"x") == b"x"


async def test_one_address_has_all_places_until_others_ask(world: World) -> None:
    there = await backend(world)
    port = await passing(world, there.port, max_sessions=16)
    for _ in range(16):
        await converse(world, client(world, port))
    for _ in range(8):
        async with asyncio.timeout(5):
            await converse(world, client(world, port, "127.0.0.2"))
    client(world, port, "127.0.0.2").send(b"x")  # it has as many as the other one now
    await world.until(lambda: world.counters["stream_refused_limit"] == 1, seconds=5)
    assert {line["client"] for line in ended(world, "gave_way")} == {"127.0.0.1"}
    assert len(ended(world, "gave_way")) == 8


async def test_newcomers_do_not_push_each_other_out_of_the_last_place(world: World) -> None:
    there = await backend(world)
    port = await passing(world, there.port, max_sessions=32)
    for _ in range(32):
        await converse(world, client(world, port))
    socks = [client(world, port, f"127.0.0.{number + 10}") for number in range(4)]
    for word in (b"1", b"2"):
        for sock in socks:
            assert await ask(world, sock, word) == word
    assert {line["client"] for line in ended(world, "gave_way")} == {"127.0.0.1"}
    for number in range(40):  # nobody's, for ever
        client(world, port, f"127.0.1.{number + 1}").send(b"x")
    await world.until(lambda: world.counters["stream_sessions"] == 32 + 4 + 40)
    conversations = [line for line in ended(world, "gave_way") if line["datagrams_received"] == 2]
    assert len(conversations) == 4 + 4


async def test_a_client_that_asks_once_from_each_port_is_served(world: World) -> None:
    """As resolvers of DNS do."""
    there = await backend(world)
    port = await passing(world, there.port, max_sessions=8)
    kept = client(world, port)
    await converse(world, kept)
    for number in range(12):
        async with asyncio.timeout(5):
            assert await ask(world, client(world, port), b"%d" % number) == b"%d" % number
    assert world.counters["stream_sessions_active"] == 8
    assert len(ended(world, "gave_way")) == 5
    assert await ask(world, kept, b"still") == b"still"
    assert there.got[-1][1] == there.got[0][1]


async def test_addresses_with_most_conversations_give_way_to_those_with_fewer(world: World) -> None:
    there = await backend(world)
    port = await passing(world, there.port, max_sessions=16)
    olds, news = [], []
    for number in range(8):
        olds += [client(world, port, f"127.0.0.{number + 10}") for _ in range(2)]
        for sock in olds[-2:]:
            await converse(world, sock)
    for number in range(8):  # each ends the one of somebody with two that is silent for longest
        news.append(client(world, port, f"127.0.0.{number + 30}"))
        async with asyncio.timeout(5):
            await converse(world, news[-1])
    gone = ended(world, "gave_way")
    assert sorted(line["client_port"] for line in gone) == sorted(
        sock.getsockname()[1] for sock in olds[::2]
    )
    client(world, port, "127.0.0.50").send(b"x")  # all have one
    await world.until(lambda: world.counters["stream_refused_limit"] == 1, seconds=5)
    for sock in (*olds[1::2], *news):
        assert await ask(world, sock, b"still") == b"still"
    assert len(ended(world, "gave_way")) == 8


async def test_nobody_gives_way_to_an_address_that_is_past_its_bound(world: World) -> None:
    there = await backend(world)
    port = await passing(world, there.port, max_sessions=16, address_connections=1)
    for number in range(16):
        await ask(world, client(world, port, f"127.0.0.{number + 10}"), b"x")
    client(world, port, "127.0.0.10").send(b"y")
    await world.until(lambda: world.counters["stream_refused_address_connections"] == 1)
    assert world.counters["stream_sessions_active"] == 16
    assert ended(world, "gave_way") == []


async def test_a_flood_of_one_address_pushes_no_other_out_that_waits_for_an_answer(
    world: World,
) -> None:
    there = await backend(world, None)
    port = await passing(world, there.port, max_sessions=32)
    waiting = client(world, port, "127.0.0.2")
    waiting.send(b"first")
    await world.until(lambda: world.counters["stream_sessions_active"] == 1)
    for _ in range(100):
        client(world, port).send(b"flood")
    await world.until(lambda: world.counters["stream_sessions"] == 101)
    there.word = b""
    await ask(world, waiting, b"second")
    assert world.counters["stream_sessions"] == 101
    assert {line["client"] for line in ended(world, "gave_way")} == {"127.0.0.1"}
