"""What tests of UDP listeners are made of: clients and backends that speak datagrams on the test's loop.

In: ports. Out: sockets whose every step is the test's. Must never wait without a deadline.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from core.stream.streams import one_cluster, stream_fleet, stream_listener
from core.world import World


class Answering(asyncio.DatagramProtocol):
    """A backend on UDP: answers each datagram with its word and what came, `copies` times; None: it is silent."""

    transport: Any

    def __init__(self, word: bytes | None = b"", copies: int = 1) -> None:
        self.word = word
        self.copies = copies
        self.got: list[tuple[bytes, tuple[str, int]]] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.got.append((data, addr))
        for _ in range(self.copies if self.word is not None else 0):
            self.transport.sendto((self.word or b"") + data, addr)

    @property
    def port(self) -> int:
        return int(self.transport.get_extra_info("sockname")[1])

    def close(self) -> None:
        self.transport.close()


async def backend(
    world: World, word: bytes | None = b"", copies: int = 1, host: str = "127.0.0.1"
) -> Answering:
    _, made = await world.loop.create_datagram_endpoint(
        lambda: Answering(word, copies), local_addr=(host, 0)
    )
    world.keep(made)
    return made


async def passing(world: World, *ports: int, **settings: object) -> int:
    listener = stream_listener(protocol="UDP", **settings)  # type: ignore[arg-type]
    world.apply(stream_fleet(listener, one_cluster(*ports)))
    return await world.listen_datagrams()


def client(
    world: World, port: int, host: str = "127.0.0.1", to: str = "127.0.0.1"
) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.setblocking(False)
    sock.connect((to, port))
    world.hold(sock)
    return sock


async def ask(world: World, sock: socket.socket, data: bytes) -> bytes:
    sock.send(data)
    async with asyncio.timeout(20):
        return await world.loop.sock_recv(sock, 65536)


async def take_from(world: World, sock: socket.socket) -> tuple[bytes, Any]:
    """The next datagram, and who it is from."""
    comes = asyncio.Event()
    world.loop.add_reader(sock, comes.set)
    try:
        await comes.wait()
    finally:
        world.loop.remove_reader(sock)
    return sock.recvfrom(65536)


async def converse(world: World, sock: socket.socket) -> None:
    """Speak again after an answer: its session is a conversation from here on."""
    for word in (b"1", b"2"):
        assert await ask(world, sock, word) == word


async def ask_again(world: World, sock: socket.socket, data: bytes) -> bytes:
    """The same where a network is so full that it loses some."""
    for _ in range(40):
        sock.send(data)
        try:
            async with asyncio.timeout(0.5):
                return await world.loop.sock_recv(sock, 65536)
        except TimeoutError:
            continue
    raise AssertionError("no answer")
