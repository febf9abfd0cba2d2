"""A client's last request over TLS: its answer and the word that nothing follows are one."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct

import pytest

from core.certificates import Site
from core.client import DEADLINE, Client, make_request
from core.fleets import PORT, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World

LAST = make_request(host="a.test", headers=[("connection", "close")])


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test")


class Spoken:
    """TLS on a client's plain socket, so that its segments can be counted."""

    def __init__(self, client: Client, context: ssl.SSLContext) -> None:
        self.sock = client.sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="a.test")
        self.ended = ""  # how: "told" by close_notify, or "cut"

    async def shake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                return await self._flush()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._receive()

    async def send(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    def send_now(self, data: bytes) -> None:
        self._tls.write(data)
        self.sock.send(self._out.read())

    async def read(self) -> bytes:
        """Everything until the end."""
        got = bytearray()
        while not self.ended:
            try:
                while part := self._tls.read(65536):
                    got += part
                self.ended = "told"
            except ssl.SSLWantReadError:
                await self._receive()
            except ssl.SSLEOFError:
                self.ended = "cut"
        return bytes(got)

    async def over(self) -> bytes:
        """What comes behind the last word: nothing, and the end."""
        async with asyncio.timeout(DEADLINE):
            return await asyncio.get_running_loop().sock_recv(self.sock, 65536)

    async def _receive(self) -> None:
        async with asyncio.timeout(DEADLINE):
            data = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
        self._in.write(data) if data else self._in.write_eof()

    async def _flush(self) -> None:
        async with asyncio.timeout(DEADLINE):
            await asyncio.get_running_loop().sock_sendall(self.sock, self._out.read())

    def segments(self) -> tuple[int, int]:
        """Those that are not acknowledged yet, and those that came (struct tcp_info of linux/tcp.h)."""
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 144)
        return struct.unpack_from("I", info, 24)[0], struct.unpack_from("I", info, 140)[0]


async def begin(
    world: World, site: Site, backend_port: int | None, receive_buffer: int = 0
) -> Spoken:
    listener = make_listener(protocol="HTTPS")
    if backend_port is None:
        world.apply(make_fleet(listener))
    else:
        world.apply(make_fleet(listener, make_host(make_rule()), make_cluster(backend_port)))
    port = await world.listen(PORT, site.choose)
    client = await world.client(port, receive_buffer=receive_buffer)
    spoken = Spoken(client, site.client())
    await spoken.shake()
    return spoken


async def test_the_farewell_comes_with_the_answer(world: World, site: Site) -> None:
    backend = await world.backend()
    spoken = await begin(world, site, backend.port)
    await spoken.send(LAST)
    call = await backend.call()
    await world.until(lambda: spoken.segments()[0] == 0)
    before = spoken.segments()[1]
    call.reply(b"x")
    assert (await spoken.read()).endswith(b"\r\n\r\nx")
    assert spoken.ended == "told"
    assert await spoken.over() == b""
    assert spoken.segments()[1] <= before + 2  # and the end


async def test_the_end_comes_with_an_answer_of_the_proxy(world: World, site: Site) -> None:
    spoken = await begin(world, site, None)
    await spoken.send(LAST[:20])
    await world.until(lambda: spoken.segments()[0] == 0)
    before = spoken.segments()[1]
    await spoken.send(LAST[20:])
    assert (await spoken.read()).startswith(b"HTTP/1.1 404")
    assert spoken.ended == "told"
    assert await spoken.over() == b""
    assert spoken.segments()[1] <= before + 2  # the other one: that the rest of the request came


async def test_bytes_behind_the_last_request_cost_it_no_answer(world: World, site: Site) -> None:
    """Closed with bytes that nobody has read the kernel sends nothing of what it was to wait with."""
    backend = await world.backend()
    spoken = await begin(world, site, backend.port)
    await spoken.send(LAST)
    call = await backend.call()
    await world.until(lambda: spoken.segments()[0] == 0)
    call.reply(b"x")
    spoken.send_now(make_request(host="a.test"))  # the engine finds both at once
    assert (await spoken.read()).endswith(b"\r\n\r\nx")
    assert spoken.ended == "told"


@pytest.mark.parametrize("size", [16_000, 16_384, 40_000, 4 << 20])
async def test_a_long_last_answer_comes_whole(world: World, site: Site, size: int) -> None:
    """Also one that the socket does not take at once, and one of several records."""
    body = bytes(size)
    backend = await world.backend()
    spoken = await begin(world, site, backend.port, receive_buffer=4096)
    await spoken.send(LAST)
    call = await backend.call()
    call.reply(body)
    assert (await spoken.read()).endswith(b"\r\n\r\n" + body)
    assert spoken.ended == "told"
    assert await spoken.over() == b""
    await world.until(lambda: world.engine.open_connections == 0)
