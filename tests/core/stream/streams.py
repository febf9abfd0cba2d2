"""What tests of layer 4 are made of: listeners and routes in few words, backends and clients of plain sockets on the test's loop.

In: ports. Out: ir objects; sockets whose every step is the test's. Must never wait without a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from core.fleets import CLUSTER, PORT, make_cluster
from core.world import World
from edgefast import ir

LISTENER = "ns/gw/stream"
DEADLINE = 20.0

Talk = Callable[["Line"], Awaitable[None]]


def stream_listener(
    name: str = LISTENER,
    *,
    protocol: ir.Protocol = "TCP",
    port: int = PORT,
    hostname: str = "*",
    tls: ir.ListenerTls | None = None,
    proxy_protocol: Any = "off",
    proxy_senders: tuple[str, ...] = ("127.0.0.0/8",),
    log: ir.AccessLog | None = None,
    **stream: Any,
) -> ir.Listener:
    """A listener of layer 4; `stream` are fields of ir.StreamSettings."""
    address = ir.ClientAddress(proxy_protocol=proxy_protocol, proxy_senders=proxy_senders)
    return ir.Listener(
        name=name,
        port=port,
        bind_port=port,
        protocol=protocol,
        hostname=hostname,
        tls=tls,
        http=ir.HttpSettings(client_address=address),
        stream=ir.StreamSettings(**{"connect_timeout": 30_000, **stream}),
        access_log=log or ir.AccessLog(),
    )


def stream_route(
    *backends: str | ir.StreamBackend,
    listener: str = LISTENER,
    hostname: str = "*",
    **more: Any,
) -> ir.StreamRoute:
    """A route; backends are cluster names or shares. None: the usual cluster. `more` are fields of ir.StreamRoute."""
    return ir.StreamRoute(
        listener=listener,
        hostname=hostname,
        route="TCPRoute ns/db",
        backends=tuple(
            ir.StreamBackend(cluster=one) if isinstance(one, str) else one
            for one in backends or (CLUSTER,)
        ),
        **more,
    )


def stream_fleet(
    *parts: ir.Listener | ir.StreamRoute | ir.Cluster | ir.VirtualHost | ir.PolicyUnit,
) -> ir.Fleet:
    """A fleet of these parts; without listeners and routes it has the usual ones."""
    listeners = tuple(one for one in parts if isinstance(one, ir.Listener))
    routes = tuple(one for one in parts if isinstance(one, ir.StreamRoute))
    return ir.Fleet(
        name="standalone",
        listeners=listeners or (stream_listener(),),
        stream_routes=routes or (stream_route(),),
        virtual_hosts=tuple(one for one in parts if isinstance(one, ir.VirtualHost)),
        clusters=tuple(one for one in parts if isinstance(one, ir.Cluster)),
        policies=tuple(one for one in parts if isinstance(one, ir.PolicyUnit)),
    )


class Line:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        async with asyncio.timeout(DEADLINE):
            await self.writer.drain()

    async def take(self, size: int) -> bytes:
        """Read so many bytes."""
        async with asyncio.timeout(DEADLINE):
            return await self.reader.readexactly(size)

    async def rest(self) -> bytes:
        """Read up to the end; ConnectionResetError for a reset."""
        async with asyncio.timeout(DEADLINE):
            return await self.reader.read()

    async def is_reset(self) -> bool:
        """Wait for the end: whether it is a reset."""
        try:
            await self.rest()
        except ConnectionResetError:
            return True
        return False

    def end(self) -> None:
        """FIN, unless the connection has gone meanwhile."""
        if not self.writer.transport.is_closing():
            self.writer.write_eof()

    def reset(self) -> None:
        """RST, at once."""
        sock = self.writer.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    close = reset


class Place:
    """A backend: `lines` are its connections, `talk` (if any) is run on each."""

    def __init__(self, talk: Talk | None = None) -> None:
        self._talk = talk
        self._server: asyncio.Server | None = None
        self._all: list[Line] = []
        self.lines: asyncio.Queue[Line] = asyncio.Queue()
        self.count = 0

    async def start(self, host: str = "127.0.0.1", **settings: Any) -> Place:
        self._server = await asyncio.start_server(self._serve, host, 0, **settings)
        return self

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        self._all.append(line)
        self.count += 1
        if self._talk is None:
            self.lines.put_nowait(line)
            return
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._talk(line)
        finally:
            line.close()

    async def next(self) -> Line:
        """The next connection that comes."""
        async with asyncio.timeout(DEADLINE):
            return await self.lines.get()

    def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for line in self._all:
            line.close()


async def connect(world: World, port: int, **settings: Any) -> Line:
    """A client."""
    async with asyncio.timeout(DEADLINE):
        line = Line(*await asyncio.open_connection("127.0.0.1", port, **settings))
    world.attend(line)
    return line


async def echo(line: Line) -> None:
    """Send back what comes, and end when it ends."""
    while data := await line.reader.read(65536):
        await line.send(data)
    line.end()
    await line.reader.read()


def says(word: bytes) -> Talk:
    """Say who it is, first; then echo."""

    async def talk(line: Line) -> None:
        await line.send(word)
        await echo(line)

    return talk


def one_cluster(*ports: int, **settings: Any) -> ir.Cluster:
    """The usual cluster."""
    return make_cluster(*ports, **settings)


async def is_refused(world: World, port: int) -> bool:
    """Connect: whether a reset is all that comes, be it before this side has looked."""
    try:
        line = await connect(world, port)
    except ConnectionResetError:
        return True
    return await line.is_reset()
