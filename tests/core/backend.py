"""A backend on the test's own loop: every request is a `Call` that the test, or a function, answers.

In: connections from the engine. Out: calls in the order they were complete, connections as they come and go. Requests are read
by the strict parser of tests/origin. Must never answer by itself unless it was given a function to do so.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any

from core.client import DEADLINE
from origin.message import Message, RequestReader


def make_response(
    body: bytes = b"", status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """A response framed by Content-Length."""
    lines = [f"HTTP/1.1 {status} Test", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Link(asyncio.Protocol):
    """One connection from the engine."""

    transport: asyncio.Transport

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.bytes_in = 0
        self.lost = False
        self.reset = False  # the engine reset it
        self.calls = 0
        self._reader = RequestReader()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.backend.links.append(self)
        if self.backend.on_link is not None:
            self.backend.on_link(self)

    def data_received(self, data: bytes) -> None:
        self.bytes_in += len(data)
        for message in self._reader.feed(data):
            self.calls += 1
            self.backend.take(Call(self, message))

    @property
    def received(self) -> bytes:
        """What came after the last complete request."""
        return bytes(self._reader.rest)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self.reset = isinstance(error, ConnectionResetError)

    def abort(self) -> None:
        """RST."""
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def close(self) -> None:
        """FIN."""
        self.transport.close()

    def shut_now(self) -> None:
        """FIN at this moment, not when the loop comes to it."""
        number = self.transport.get_extra_info("socket").fileno()
        with socket.socket(fileno=os.dup(number)) as sock:
            sock.shutdown(socket.SHUT_RDWR)

    def pause(self) -> None:
        """Read no more. A loop that has just accepted a connection begins to read it after this turn."""
        asyncio.get_running_loop().call_soon(self.transport.pause_reading)


class Call:
    """A request that waits for its answer."""

    def __init__(self, link: Link, message: Message) -> None:
        self.link = link
        self.message = message

    @property
    def path(self) -> str:
        """The target as text."""
        return self.message.target.decode()

    def send(self, data: bytes) -> None:
        """Raw bytes of an answer."""
        self.link.transport.write(data)

    def reply(
        self, body: bytes = b"", status: int = 200, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """A whole answer."""
        self.send(make_response(body, status, headers))


Answer = Callable[[Call], bytes | None]


class Backend:
    """A listening loopback port. With `answer` every call is answered at once, unless it returns None."""

    port: int

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.on_link: Callable[[Link], None] | None = None  # called with every new connection
        self.links: list[Link] = []
        self.count = 0
        self._calls: asyncio.Queue[Call] = asyncio.Queue()
        self._servers: list[asyncio.Server] = []

    async def start(
        self, context: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
    ) -> Backend:
        """Listen; the last address is `port`."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Link(self), host, port, ssl=context, backlog=1024)
        self._servers.append(server)
        self.port = server.sockets[0].getsockname()[1]
        return self

    async def start_unix(self, path: str) -> None:
        """Listen on a unix socket, too."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(lambda: Link(self), path))

    def take(self, call: Call) -> None:
        """Called by a link."""
        self.count += 1
        data = self.answer(call) if self.answer is not None else None
        if data is not None:
            call.send(data)
        else:
            self._calls.put_nowait(call)

    async def call(self) -> Call:
        """The next request that nothing has answered yet."""
        async with asyncio.timeout(DEADLINE):
            return await self._calls.get()

    async def calls(self, count: int) -> list[Call]:
        """The next `count` of them."""
        return [await self.call() for _ in range(count)]

    @property
    def open(self) -> list[Link]:
        """Connections that are not lost."""
        return [link for link in self.links if not link.lost]

    def drop(self) -> None:
        """Close every connection."""
        for link in self.open:
            link.close()

    def close(self) -> None:
        """Stop listening, drop everything."""
        for server in self._servers:
            server.close()
        for link in self.open:
            link.transport.abort()


def say(text: str) -> Answer:
    """Always 200 with this body."""
    data = make_response(text.encode())
    return lambda call: data
