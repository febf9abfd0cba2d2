"""Handshakes that go on: counted, bounded, ended in time, in nobody's way."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time

import pytest

from core.backend import say
from core.certificates import Site
from core.fleets import PORT, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast.core import TlsContext, TlsError

HELLO = b"\x16\x03\x01\x02\x00\x01"  # the first six bytes of one


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test")


async def serve(world: World, site: Site, **http: object) -> int:
    backend = await world.backend(say("x"))
    listener = make_listener(protocol="HTTPS", **http)
    world.apply(make_fleet(listener, make_host(make_rule()), make_cluster(backend.port)))
    return await world.listen(PORT, site.choose)


def connect(world: World, port: int, said: bytes = b"") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setblocking(False)
    sock.send(said)
    world.hold(sock)
    return sock


async def ended(world: World, sock: socket.socket) -> bytes:
    """What it hears until the end."""
    heard = b""
    while data := await world.loop.sock_recv(sock, 4096):
        heard += data
    return heard


async def test_silent_connections_are_within_the_cap(world: World, site: Site) -> None:
    port = await serve(world, site, max_connections=5)
    client = await world.tls_client(port, site.client(), "a.test")
    clients = [connect(world, port, HELLO) for _ in range(50)]
    await world.until(lambda: world.counters["connections_refused"] == 46, "refusals")
    assert world.counters["handshakes_active"] == 4
    assert world.counters["connections_total"] == 47  # the others count when they are open
    assert world.engine.open_connections == 5
    assert (await client.get(host="a.test")).status == 200
    for one in clients:
        one.close()
    await world.until(lambda: world.counters["handshakes_active"] == 0, "room")
    assert world.counters["handshakes_failed_closed"] == world.counters["handshakes_failed"] == 4
    again = await world.tls_client(port, site.client(), "a.test")
    assert (await again.get(host="a.test")).status == 200


async def test_idle_connections_of_one_address_leave_handshakes_to_others(
    world: World, site: Site
) -> None:
    port = await serve(world, site, max_connections=4)
    held = [await world.tls_client(port, site.client(), "a.test") for _ in range(4)]
    for _ in range(2):
        client = await world.tls_client(port, site.client(), "a.test", source="127.0.0.2")
        assert (await client.get(host="a.test")).status == 200
    for one in held[:2]:
        await one.ending()
    assert world.counters["connections_gave_way"] == 2
    refused = connect(world, port, HELLO)
    with contextlib.suppress(ConnectionResetError):
        assert await ended(world, refused) == b""
    assert world.counters["connections_refused"] == 1


async def test_who_is_silent_for_long_makes_room(world: World, site: Site) -> None:
    port = await serve(world, site, max_connections=3)
    silent = [connect(world, port) for _ in range(3)]
    await world.until(lambda: world.counters["handshakes_active"] == 3)
    client = None
    while client is None:
        try:
            client = await world.tls_client(port, site.client(), "a.test")
        except (ConnectionError, ssl.SSLError):
            await asyncio.sleep(0.05)
    assert (await client.get(host="a.test")).status == 200
    assert await ended(world, silent[0]) == b""
    assert world.counters["handshakes_active"] == 2
    assert world.counters["handshakes_failed"] == 0


async def test_who_stalls_after_its_hello_makes_room(world: World, site: Site) -> None:
    port = await serve(world, site, max_connections=5)
    stalled = [connect(world, port, client_hello(site.client())[2].read()) for _ in range(5)]
    for one in stalled:
        assert await world.loop.sock_recv(one, 1)  # it is answered, and says no more
    client = None
    async with asyncio.timeout(8):  # before they have had their time
        while client is None:
            try:
                client = await world.tls_client(port, site.client(), "a.test")
            except (ConnectionError, ssl.SSLError):
                await asyncio.sleep(0.05)
    assert (await client.get(host="a.test")).status == 200
    assert world.counters["handshakes_active"] == 4
    assert world.counters["handshakes_failed"] == 0


async def test_unfinished_hellos_have_32_mib_together(world: World, site: Site) -> None:
    port = await serve(world, site)
    size = 32 * 1024
    part = size // 2
    body = b"\x01" + (size - 4).to_bytes(3) + bytes(size - 5)  # without its last byte
    records = b"".join(
        b"\x16\x03\x01" + len(one).to_bytes(2) + one for one in (body[:part], body[part:])
    )
    first = connect(world, port)
    await world.loop.sock_sendall(first, records)
    for _ in range((32 << 20) // len(records) + 8):
        await world.loop.sock_sendall(connect(world, port), records)
    async with asyncio.timeout(20):
        assert await ended(world, first) == b""  # the oldest
    assert world.counters["connections_refused"] >= 1
    client = await world.tls_client(port, site.client(), "a.test")
    assert (await client.get(host="a.test")).status == 200


async def test_a_turn_has_as_many_handshakes_as_time_for_them(world: World, site: Site) -> None:
    turns: list[int] = []

    def choose(name: str) -> TlsContext:
        turns.append(world.counters["turns"])
        end = time.monotonic() + 0.004  # a slow one
        while time.monotonic() < end:
            pass
        return site.choose(name)

    backend = await world.backend(say("x"))
    world.apply(
        make_fleet(
            make_listener(protocol="HTTPS"), make_host(make_rule()), make_cluster(backend.port)
        )
    )
    port = await world.listen(PORT, choose)
    socks = [connect(world, port) for _ in range(6)]
    await world.until(lambda: world.counters["handshakes_active"] == 6)
    for sock in socks:
        sock.send(client_hello(site.client())[2].read())
    await world.until(lambda: len(turns) == 6)
    assert len(set(turns)) == 6


async def test_who_cannot_be_given_a_certificate_is_told_of_once(world: World, site: Site) -> None:
    def choose(name: str) -> TlsContext:
        raise TlsError("not now")

    await serve(world, site)
    port = await world.listen(PORT, choose)
    for _ in range(5):
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await world.tls_client(port, site.client(), "a.test")
    assert world.take_faults() == ["tls: a certificate could not be chosen: not now"]
    assert world.counters["handshakes_failed_local"] == 5


async def test_a_handshake_has_as_long_as_a_request_head(world: World, site: Site) -> None:
    port = await serve(world, site, head_timeout=50)
    async with asyncio.timeout(8):  # less than a handshake has without that setting
        for said in (b"", HELLO):
            assert await ended(world, connect(world, port, said)) == b""
    await world.until(lambda: world.counters["handshakes_failed_timeout"] == 2)
    flight = await ended(world, connect(world, port, client_hello(site.client())[2].read()))
    assert flight, "the hello was answered; its client's Finished did not come"
    await world.until(lambda: world.counters["handshakes_failed_timeout"] == 3)


async def test_bytes_of_a_hello_give_it_no_more_time(world: World, site: Site) -> None:
    port = await serve(world, site, head_timeout=200)
    sock = connect(world, port, b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03")
    heard = asyncio.ensure_future(ended(world, sock))
    async with asyncio.timeout(8):
        while not heard.done():
            with contextlib.suppress(ConnectionError):
                sock.send(b"\x00")
            await asyncio.sleep(0.02)
    with contextlib.suppress(ConnectionError):
        assert await heard == b""
    assert world.counters["handshakes_failed_timeout"] == 1


@pytest.mark.parametrize(
    ("data", "alert", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", 10, "protocol"),
        (b"\x16\x02\x00\x00\x10" + bytes(16), 70, "version"),
        (b"\x16\x03\x01\xff\xff" + bytes(600), 22, "protocol"),
        (b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", 50, "protocol"),
        (b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", 10, "protocol"),
        (b"\x16\x03\x01\x00\x00", 10, "protocol"),
    ],
)
async def test_what_is_no_hello_is_told_so(
    world: World, site: Site, data: bytes, alert: int, reason: str
) -> None:
    port = await serve(world, site)
    sock = connect(world, port, data)
    try:
        heard = await ended(world, sock)
    except ConnectionResetError:
        heard = b""
    assert heard in (b"", bytes([21, 3, 3, 0, 2, 2, alert]))
    await world.until(lambda: world.counters["handshakes_failed"] == 1)
    assert world.counters[f"handshakes_failed_{reason}"] == 1


def client_hello(context: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(to_client, to_server, server_hostname="a.test")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return tls, to_client, to_server


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size", [1, 7, 100])
async def test_a_hello_in_pieces_and_in_several_records(
    world: World, site: Site, size: int, version: ssl.TLSVersion
) -> None:
    port = await serve(world, site)
    context = site.client()
    context.minimum_version = context.maximum_version = version
    tls, to_client, to_server = client_hello(context)
    hello = to_server.read()[5:]
    step = max(size, 16)
    records = b"".join(
        b"\x16\x03\x01" + len(part).to_bytes(2) + part
        for part in (hello[at : at + step] for at in range(0, len(hello), step))
    )
    sock = connect(world, port)
    for at in range(0, len(records), size):
        sock.send(records[at : at + size])
        await asyncio.sleep(0)
    while True:
        to_client.write(await world.loop.sock_recv(sock, 65536))
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            await world.loop.sock_sendall(sock, to_server.read())
    tls.write(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
    await world.loop.sock_sendall(sock, to_server.read())
    to_client.write(await ended(world, sock))
    assert tls.read(4096).startswith(b"HTTP/1.1 200")
    assert tls.read(4096) == b""  # the end is said


async def test_an_end_in_the_middle_of_a_hello(world: World, site: Site) -> None:
    port = await serve(world, site)
    hello = client_hello(site.client())[2].read()
    sock = connect(world, port, hello[: len(hello) // 2])
    sock.shutdown(socket.SHUT_WR)
    assert await ended(world, sock) == b""
    await world.until(lambda: world.counters["handshakes_failed_closed"] == 1)


async def test_who_is_connected_is_served_beside_many_handshakes(world: World, site: Site) -> None:
    port = await serve(world, site)
    client = await world.tls_client(port, site.client(), "a.test")
    hellos = [client_hello(site.client())[2].read() for _ in range(100)]
    for hello in hellos:
        connect(world, port, hello)
    assert (await client.get(host="a.test")).status == 200
    await world.until(lambda: world.counters["handshakes_active"] == 100)
