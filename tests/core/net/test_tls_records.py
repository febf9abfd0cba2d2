"""Records of clients: pieces of them, and sizes that a client asks for."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from core.backend import say
from core.certificates import Site
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from wire.harness.programs import ALONE

HTTPS = make_listener("ns/gw/a.test", hostname="a.test", protocol="HTTPS")
ROUNDS = 300  # of the loop
LONG = 60_000


async def serve(world: World, site: Site, text: str) -> int:
    backend = await world.backend(say(text))
    host = make_host(make_rule(), listener=HTTPS.name)
    world.apply(make_fleet(make_cluster(backend.port), HTTPS, host))
    return await world.listen(choose=site.choose)


class Records:
    """A client whose records are sent by hand."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="a.test")
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.port = port

    async def shake(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self.socket, ("127.0.0.1", self.port))
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.send(self.outgoing.read())
                self.incoming.write(await loop.sock_recv(self.socket, 65536))
            else:
                return await self.send(self.outgoing.read())

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    def seal(self, data: bytes) -> bytes:
        self.tls.write(data)
        return self.outgoing.read()

    async def read_status(self) -> bytes:
        loop = asyncio.get_running_loop()
        while True:
            try:
                return self.tls.read(65536)[:12]
            except ssl.SSLWantReadError:
                self.incoming.write(await loop.sock_recv(self.socket, 65536))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size", [3, 6, 40])
async def test_a_piece_of_a_record_is_waited_for(
    world: World, size: int, version: ssl.TLSVersion
) -> None:
    """The library says it has something; nothing can be made of it before more comes, and the worker rests."""
    site = Site("a.test")
    context = site.client()
    context.maximum_version = version
    async with asyncio.timeout(60):
        client = Records(await serve(world, site, "x"), context)
        await client.shake()
        await client.send(client.seal(make_request(host="a.test")))
        assert await client.read_status() == b"HTTP/1.1 200"
        record = client.seal(make_request(host="a.test"))
        events = world.counters["turn_events"]
        await client.send(record[:size])
        await world.until(lambda: world.counters["turn_events"] > events, "the piece is read")
        turns = world.counters["turns"]
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        assert world.counters["turns"] - turns < ROUNDS // 10
        await client.send(record[size:])
        assert await client.read_status() == b"HTTP/1.1 200"
    client.socket.close()


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize("most", ["512", "1024", "2048", "4096"])
async def test_clients_that_want_small_fragments_get_all_of_it(
    world: World, most: str, version: str
) -> None:
    """RFC 6066 4. A library that does not know of it sends records of any size."""
    port = await serve(world, Site("a.test"), "y" * LONG)
    argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "a.test"]
    pipe = asyncio.subprocess.PIPE
    async with asyncio.timeout(60):
        client = await asyncio.create_subprocess_exec(
            *argv, "-quiet", "-ign_eof", "-maxfraglen", most, version,
            stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, env=ALONE,
        )  # fmt: skip
        said, _ = await client.communicate(
            b"GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n"
        )
    assert said.startswith(b"HTTP/1.1 200") and said.count(b"y") >= LONG
