"""Echo: a small HTTP/1.1 origin on loopback that describes each request, to test a configuration without backends.

In: names of origins.
Out: a port on 127.0.0.1 for each, and a text page for each request: the name, method, path and
headers. Limits apply to origins, connections, the size of a head, and the time of a connection.
Must never: listen on another address, or show a credential of a well-known header.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Awaitable, Callable

__all__ = ["MAX_ORIGINS", "Echo", "describe"]

log = logging.getLogger(__name__)

#: Origins; each has a listening socket.
MAX_ORIGINS = 256
#: Connections of all origins; one more is closed.
_CONNECTIONS = 512
_HEAD_BYTES = 65_536
_READ_BYTES = 65_536
#: Seconds for a connection, its request body included.
_DEADLINE = 30.0
_BACKLOG = 128
_HIDDEN = frozenset({b"authorization", b"cookie", b"proxy-authorization"})
_END = b"\r\n\r\n"

_Attend = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Echo:
    """Serves origins that describe each request. `get_port` may be called in any thread, also before `run`."""

    def __init__(self, limit: int = MAX_ORIGINS) -> None:
        self._limit = limit
        self._ports: dict[str, int] = {}
        self._new: list[tuple[str, socket.socket]] = []
        self._lock = threading.Lock()
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections = 0

    def get_port(self, name: str) -> int | None:
        """Return the port of an origin, and open it if it is new; None at the limit or without a socket."""
        with self._lock:
            if name in self._ports:
                return self._ports[name]
            if len(self._ports) >= self._limit:
                return None
            try:
                sock = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
            except OSError as error:
                log.warning("echo: no socket: service=%s error=%s", name, error.strerror or error)
                return None
            sock.setblocking(False)
            port: int = sock.getsockname()[1]
            self._ports[name] = port
            self._new.append((name, sock))
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake.set)
            return port

    async def run(self) -> None:
        """Serve all origins until cancelled."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
        self._wake.set()
        async with contextlib.AsyncExitStack() as servers:
            while True:
                await self._wake.wait()
                self._wake.clear()
                with self._lock:
                    new, self._new = self._new, []
                for name, sock in new:
                    server = await asyncio.start_server(self._handler(name), sock=sock, limit=_HEAD_BYTES)  # fmt: skip
                    servers.callback(server.close)

    def _handler(self, name: str) -> _Attend:
        async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._connections >= _CONNECTIONS:
                writer.close()
                return
            self._connections += 1
            try:
                async with asyncio.timeout(_DEADLINE):
                    await _answer(name, reader, writer)
            except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                pass  # the proxy closed the connection, or its request is too long or too slow
            finally:
                self._connections -= 1
                writer.close()

        return attend


async def _answer(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(_END)).removesuffix(_END)
    writer.write(describe(name, head))
    await writer.drain()
    writer.write_eof()
    while await reader.read(_READ_BYTES):  # a body that is not read would reset the connection
        pass


def describe(name: str, head: bytes) -> bytes:
    """Return the response to a request head."""
    first, *fields = head.split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return _respond(b"400 Bad Request", b"this origin answers HTTP/1.1 only\n")
    method, target, _ = words
    lines = [b"service: " + name.encode(), b"method: " + method, b"path: " + target, b"headers:"]
    body = b"\n".join([*lines, *map(_show, fields), b""])
    response = _respond(b"200 OK", body)
    return response if method != b"HEAD" else response.removesuffix(body)


def _show(field: bytes) -> bytes:
    name, _, value = field.partition(b":")
    shown = b"(hidden)" if name.strip().lower() in _HIDDEN else value.strip()
    return b"  " + name + b": " + shown


def _respond(status: bytes, body: bytes) -> bytes:
    return (
        b"HTTP/1.1 " + status + b"\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"X-Content-Type-Options: nosniff\r\n"
        b"Cache-Control: no-store\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n"
        b"Connection: close\r\n\r\n" + body
    )
