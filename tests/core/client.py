"""A raw client on the test's own loop: it sends exactly what it is told and reads one response at a time.

In: bytes. Out: `Response`s, and how the connection ended. Must never send anything by itself, or wait without a deadline.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Iterable
from dataclasses import dataclass

DEADLINE = 30.0  # seconds for any answer; tests that pass never come near it


@dataclass(frozen=True)
class Response:
    """One response; header names in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    trailers: tuple[tuple[str, str], ...] = ()

    def value(self, name: str) -> str | None:
        """The only value of a header; None when it is absent."""
        found = [value for key, value in self.headers if key == name]
        assert len(found) < 2, f"{name} came {len(found)} times"
        return found[0] if found else None


class Gone(Exception):
    """The connection ended before the response was complete; `reset` or closed."""

    def __init__(self, received: bytes, reset: bool) -> None:
        super().__init__(f"{'reset' if reset else 'closed'} after {received!r}")
        self.received = received
        self.reset = reset


def make_request(
    path: str = "/",
    *,
    method: str = "GET",
    host: str = "test",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
) -> bytes:
    """The bytes of a request; a body comes with Content-Length."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


class Client:
    """One connection. `received` counts all bytes."""

    def __init__(self, sock: socket.socket, tls: ssl.SSLObject | None = None) -> None:
        self.sock = sock
        self.received = 0
        self._rest = bytearray()
        self._loop = asyncio.get_running_loop()
        self._tls = tls
        self._closed = False

    @classmethod
    async def connect(
        cls, port: int, *, receive_buffer: int = 0, source: str = "127.0.0.1"
    ) -> Client:
        """Connect to a loopback port, from any address of 127/8."""
        sock = socket.socket()
        sock.setblocking(False)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if source != "127.0.0.1":
            sock.bind((source, 0))
        try:
            async with asyncio.timeout(DEADLINE):
                await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        async with asyncio.timeout(DEADLINE):
            await self._loop.sock_sendall(self.sock, data)

    async def receive(self) -> bytes:
        """Some bytes; b"" at the end. ConnectionResetError is passed on."""
        async with asyncio.timeout(DEADLINE):
            data = await self._loop.sock_recv(self.sock, 65536)
        self.received += len(data)
        return data

    async def _more(self) -> None:
        try:
            data = await self.receive()
        except ConnectionResetError:
            raise Gone(bytes(self._rest), reset=True) from None
        if not data:
            raise Gone(bytes(self._rest), reset=False)
        self._rest += data

    async def response(self, *, head: bool = False) -> Response:
        """The next response; `head`: it answers HEAD. Raises Gone."""
        while b"\r\n\r\n" not in self._rest:
            await self._more()
        text = self._take(self._rest.index(b"\r\n\r\n") + 4)
        first, *lines = text[:-4].decode("latin-1").split("\r\n")
        headers = tuple(
            (name.lower(), value.strip()) for name, _, value in (x.partition(":") for x in lines)
        )
        status = int(first.split(" ")[1])
        if head:
            return Response(status, headers, b"")
        return Response(status, headers, *await self._body(status, dict(headers)))

    async def _body(
        self, status: int, headers: dict[str, str]
    ) -> tuple[bytes, tuple[tuple[str, str], ...]]:
        if status < 200 or status in (204, 304):
            return b"", ()
        if headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(await self._line(), 16):
                parts.append((await self._exactly(size + 2))[:-2])
            trailers = []
            while line := (await self._line()).decode("latin-1"):
                name, _, value = line.partition(":")
                trailers.append((name.lower(), value.strip()))
            return b"".join(parts), tuple(trailers)
        return await self._exactly(int(headers["content-length"])), ()

    async def _line(self) -> bytes:
        while b"\r\n" not in self._rest:
            await self._more()
        return self._take(self._rest.index(b"\r\n") + 2)[:-2]

    async def _exactly(self, count: int) -> bytes:
        while len(self._rest) < count:
            await self._more()
        return self._take(count)

    def _take(self, count: int) -> bytes:
        data = bytes(self._rest[:count])
        del self._rest[:count]
        return data

    async def ask(self, data: bytes, *, head: bool = False) -> Response:
        """Send a request, read its response."""
        await self.send(data)
        return await self.response(head=head)

    async def get(self, path: str = "/", **request: object) -> Response:
        """GET; keywords as make_request."""
        return await self.ask(make_request(path, **request))  # type: ignore[arg-type]

    async def ending(self) -> str:
        """Read to the end: "closed" or "reset". Bytes that were not read before count as a fault."""
        try:
            rest = bytes(self._rest) + await self.receive()
        except ConnectionResetError:
            return "reset"
        assert rest == b"", rest
        return "closed"

    def shut_writing(self) -> None:
        """FIN."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        """FIN, or RST when bytes were not read."""
        if not self._closed:
            self._closed = True
            self.sock.close()
