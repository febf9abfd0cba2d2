"""What one port, and one address, may have of a listener; and who the client is where a load balancer speaks for it."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from core.apart import apart, shift
from core.client import Client
from core.stream.streams import (
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

V2 = b"\r\n\r\n\x00\r\nQUIT\n"


async def passing(world: World, **settings: object) -> int:
    backend = await Place(echo).start()
    world.keep(backend)
    world.apply(stream_fleet(stream_listener(**settings), one_cluster(backend.port)))  # type: ignore[arg-type]
    return await world.listen_stream()


@pytest.mark.parametrize(
    ("settings", "end", "counter"),
    [
        ({"max_connections": 3}, "too_many_connections", "limit"),
        ({"address_connections": 3}, "address_connections", "address_connections"),
        ({"address_rate": 3}, "address_rate", "address_rate"),
    ],
)
async def test_a_bound(world: World, settings: dict[str, int], end: str, counter: str) -> None:
    port = await passing(world, **settings)
    clients = [await connect(world, port) for _ in range(3)]
    for client in clients:
        await client.send(b"x")
        assert await client.take(1) == b"x"
    assert await is_refused(world, port)
    await world.until(lambda: world.engine.open_connections == 3)
    assert [line["end"] for line in world.lines()] == [end]
    assert world.counters["stream_refused_" + counter] == 1
    for client in clients:
        client.close()
    await world.until(lambda: world.engine.open_connections == 0)
    if end != "address_rate":
        again = await connect(world, port)
        await again.send(b"y")
        assert await again.take(1) == b"y"
        again.close()


@apart(clock=True)
async def test_one_address_that_has_all_connections_leaves_some_to_others(world: World) -> None:
    """Its idle connections end first, the longest idle one before the others; then any while it has more than twice as many."""
    port = await passing(world, max_connections=6)

    async def come(source: str = "127.0.0.1") -> Line:
        line = await connect(world, port, local_addr=(source, 0))
        await line.send(b"x")
        assert await line.take(1) == b"x"
        return line

    def gone(line: Line) -> bool:
        return bool(line.writer.transport.is_closing())

    held = [await come() for _ in range(6)]
    others = [await come("127.0.0.2")]  # though none is quiet
    await world.until(lambda: sum(map(gone, held)) == 1)
    shift(2)
    kept = next(line for line in held if not gone(line))
    await kept.send(b"y")
    assert await kept.take(1) == b"y"
    others += [await come("127.0.0.2") for _ in range(2)]
    await world.until(lambda: sum(map(gone, held)) == 3)
    assert await is_refused(world, port)  # each of both has three
    for line in (kept, *others):
        await line.send(b"z")
        assert await line.take(1) == b"z"
    for line in (*held, *others):
        line.close()
    await world.until(lambda: world.engine.open_connections == 0)
    ends = [line["end"] for line in world.lines()]
    assert (ends.count("gave_way"), ends.count("too_many_connections")) == (3, 1)


@apart(clock=True)
async def test_active_connections_of_addresses_with_few_stay(world: World) -> None:
    """No address has more than an eighth. A connection that is idle for 30 s is closed."""
    port = await passing(world, max_connections=24)
    held = []
    for number in range(24):
        line = await connect(world, port, local_addr=(f"127.0.1.{1 + number // 3}", 0))
        await line.send(b"x")
        assert await line.take(1) == b"x"
        held.append(line)
    assert await is_refused(world, port)
    shift(2)
    assert await is_refused(world, port)
    shift(30)
    newcomer = await connect(world, port)
    await newcomer.send(b"y")
    assert await newcomer.take(1) == b"y"
    assert [line["end"] for line in world.lines()].count("gave_way") == 1
    for line in (*held, newcomer):
        line.close()


@apart(clock=True)
async def test_connections_that_close_give_way(world: World) -> None:
    """Both sides have sent their end, and the client does not take the rest."""
    place = await Place().start()
    world.keep(place)
    settings = stream_listener(max_connections=2)
    world.apply(stream_fleet(settings, one_cluster(place.port)))
    port = await world.listen_stream()

    async def open_line() -> tuple[Client, Line]:
        client = await world.client(port, receive_buffer=4096)
        await client.send(b"x")
        there = await place.next()
        assert await there.take(1) == b"x"
        client.sock.shutdown(socket.SHUT_WR)
        assert await there.rest() == b""
        return client, there

    async def fill(there: Line, most: int) -> int:
        """Send until the peer reads no further byte; return how many were sent."""
        sent = 0
        start = world.counters["stream_sent_bytes"]
        while sent < most:
            there.writer.write(bytes(4096))
            sent += 4096
            for _ in range(20):
                await world.turns(5)
                if world.counters["stream_sent_bytes"] == start + sent:
                    break
            else:
                return sent
        return sent

    client, there = await open_line()
    room = (
        await fill(there, 1 << 30) - 40_000
    )  # so much less is in the kernel, and in the connection
    client.reset()
    await world.until(lambda: world.engine.open_connections == 0)
    for _ in range(2):
        client, there = await open_line()
        assert await fill(there, room) >= room
        there.end()
    await world.turns(50)
    shift(1.1)
    line = await connect(world, port, local_addr=("127.0.0.2", 0))
    await line.send(b"y")
    there = await place.next()
    assert await there.take(1) == b"y"
    line.close()
    await world.until(lambda: "gave_way" in [line["end"] for line in world.lines()])


def preamble(address: str, version: int = 1) -> bytes:
    if version == 1:
        family = "TCP6" if ":" in address else "TCP4"
        there = "::1" if ":" in address else "127.0.0.1"
        return f"PROXY {family} {address} {there} 4711 80\r\n".encode()
    packed = bytes(map(int, address.split(".")))
    return V2 + struct.pack("!BBH4s4sHH", 0x21, 0x11, 12, packed, b"\x7f\0\0\1", 4711, 80)


@pytest.mark.parametrize("version", [1, 2])
async def test_the_client_is_who_the_load_balancer_says(world: World, version: int) -> None:
    port = await passing(world, proxy_protocol="required", address_connections=1)
    clients = []
    for last in (1, 2):
        client = await connect(world, port)
        await client.send(preamble(f"192.0.2.{last}", version) + b"first")
        assert await client.take(5) == b"first"
        clients.append(client)
    same = await connect(world, port)
    await same.send(preamble("192.0.2.1", version))
    assert await same.is_reset()
    for client in clients:
        client.close()
    await world.until(lambda: world.engine.open_connections == 0)
    assert sorted((line["client"], line["client_port"]) for line in world.lines()) == [
        ("192.0.2.1", 4711),
        ("192.0.2.1", 4711),
        ("192.0.2.2", 4711),
    ]


async def test_addresses_of_one_network_of_ipv6_are_one_client(world: World) -> None:
    port = await passing(world, proxy_protocol="required", address_connections=1)
    first = await connect(world, port)
    await first.send(preamble("2001:db8:1:2::1") + b"x")
    assert await first.take(1) == b"x"
    same = await connect(world, port)
    await same.send(preamble("2001:db8:1:2:ffff::9"))
    assert await same.is_reset()
    other = await connect(world, port)
    await other.send(preamble("2001:db8:1:3::1") + b"y")
    assert await other.take(1) == b"y"
    first.close()
    other.close()


async def test_a_preamble_that_is_none(world: World) -> None:
    port = await passing(world, proxy_protocol="required", hello_timeout=100)
    for wrong in (b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 nonsense\r\n", b"PROXY T"):
        client = await connect(world, port)
        await client.send(wrong)
        assert await client.is_reset()
    await world.until(lambda: world.engine.open_connections == 0)
    assert [line["end"] for line in world.lines()] == ["proxy_protocol"] * 3


async def test_an_optional_preamble(world: World) -> None:
    port = await passing(world, proxy_protocol="optional")
    client = await connect(world, port)
    await client.send(b"plain")
    assert await client.take(5) == b"plain"
    client.close()


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_the_backend_is_told_who_the_client_is(world: World, version: str) -> None:
    backend = await Place().start()
    world.keep(backend)
    share = ir.StreamBackend(cluster="c", proxy_protocol=version)  # type: ignore[arg-type]
    world.apply(stream_fleet(stream_route(share), one_cluster(backend.port, name="c")))
    port = await world.listen_stream()
    client = await connect(world, port)
    own = client.writer.get_extra_info("sockname")[1]
    await client.send(b"and then this")
    there = await backend.next()
    if version == "v1":
        expected = f"PROXY TCP4 127.0.0.1 127.0.0.1 {own} {port}\r\n".encode()
    else:
        local = b"\x7f\0\0\1"
        expected = V2 + struct.pack("!BBH4s4sHH", 0x21, 0x11, 12, local, local, own, port)
    assert await there.take(len(expected) + 13) == expected + b"and then this"
    client.close()
    there.close()


async def test_who_says_no_preamble_gives_way(world: World) -> None:
    port = await passing(world, proxy_protocol="required", max_connections=2)
    silent = [await connect(world, port) for _ in range(2)]
    await world.until(lambda: world.engine.open_connections == 2)
    assert await is_refused(world, port)  # they have a second
    await asyncio.sleep(1.1)
    client = await connect(world, port)
    await client.send(preamble("192.0.2.1") + b"x")
    assert await client.take(1) == b"x"
    assert await silent[0].is_reset()
    assert sorted(line["end"] for line in world.lines()) == ["gave_way", "too_many_connections"]


@pytest.mark.parametrize("setting", ["optional", "required"])
async def test_only_trusted_senders_say_who_a_client_is(world: World, setting: str) -> None:
    port = await passing(
        world, proxy_protocol=setting, proxy_senders=("10.0.0.0/8", "127.0.0.2/32")
    )
    client = await connect(world, port)
    await client.send(preamble("192.0.2.1") + b"x")
    assert await client.is_reset()
    own = await connect(world, port)
    await own.send(b"PRO")  # it may be one yet
    await own.send(b"of")
    if setting == "required":
        assert await own.is_reset()
    else:
        assert await own.take(5) == b"PROof"
        own.close()
    await world.until(lambda: world.engine.open_connections == 0)
    assert "192.0.2.1" not in {line["client"] for line in world.lines()}


async def test_an_end_before_the_preamble(world: World) -> None:
    port = await passing(world, proxy_protocol="required")
    client = await connect(world, port)
    client.end()
    assert await client.is_reset()
    world.apply(ir.Fleet(name="standalone"))
    port = await passing(world, proxy_protocol="optional")
    client = await connect(world, port)
    await client.send(b"PROXY")
    client.end()
    assert await client.rest() == b"PROXY"
    assert [line["end"] for line in world.lines()][0] == "proxy_protocol"


async def test_bounds_outlive_a_listener_that_comes_back(world: World) -> None:
    port = await passing(world, max_connections=2)
    clients = [await connect(world, port) for _ in range(2)]
    await world.until(lambda: world.engine.open_connections == 2)
    world.apply(ir.Fleet(name="standalone"))
    await passing(world, max_connections=2)
    assert await is_refused(world, port)
    for client in clients:
        client.close()
