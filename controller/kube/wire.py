"""Wire: one HTTP/1.1 connection to an API server, one request at a time.

In: the bytes of a request.
Out: an `Answer` when its head was received; the body follows in pieces, and a slow reader slows the
server. A connection is idle again when an answer was read completely. A reader that stops earlier
closes the connection.
Source: RFC 9112; the parser is llhttp.
Must never: report an incomplete answer as complete, or keep more than BUFFER of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

__all__ = ["BUFFER", "Answer", "Broken", "Wire"]

#: Bytes of an answer that wait for their reader, about; then nothing more is read.
BUFFER = 256 * 1024
#: Bytes of a head.
_HEAD = 64 * 1024


class Broken(Exception):
    """The connection ended, or what came is no HTTP; `untouched`: no byte of an answer had come."""

    def __init__(self, message: str, *, untouched: bool = False) -> None:
        super().__init__(message)
        self.untouched = untouched


class Answer:
    """One answer: its head, and its body piece by piece."""

    def __init__(self, wire: Wire, status: int, retry_after: str) -> None:
        self.status = status
        self.retry_after = retry_after
        self._wire: Wire | None = wire

    async def read(self) -> bytes:
        """Return more of the body, b"" when it is over; raises Broken."""
        return await self._wire.read_body() if self._wire is not None else b""

    def leave(self) -> None:
        """Release the answer; abort the connection if the answer is incomplete.

        An orderly close would wait for the TLS close_notify of a machine that may be gone.
        """
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.leave()


class Wire(asyncio.Protocol):
    """One HTTP/1.1 connection to an API server."""

    def __init__(self, on_idle: Callable[[Wire], None], on_lost: Callable[[Wire], None]) -> None:
        """`on_idle`: it may be used again; `on_lost`: it never can."""
        self.used = False  # a request was answered on it
        self.idle_since = 0.0
        self.lost = False
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._why = ""
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: deque[bytes] = deque()
        self._waiting = 0  # bytes of them
        self._was_requested = False  # a request was written, and its answer is not over
        self._came = 0  # bytes of the head
        self._head = False
        self._whole = False
        self._paused = False
        self._kept = False  # the head says that the connection stays
        self._framed = False  # the head says where the body ends
        self._retry_after = ""

    # --- for the client -------------------------------------------------------------------------

    async def ask(self, request: bytes) -> Answer:
        """Send a request; return when the head of its answer is there. Raises Broken."""
        transport = self._transport
        if transport is None or self.lost:
            raise Broken(self._why or "the connection is closed", untouched=True)
        self._was_requested = True
        try:
            transport.write(request)
            await self._writable.wait()
            while not self._head:
                if self.lost:
                    raise Broken(
                        self._why or "the server closed the connection", untouched=not self._came
                    )
                await self._wait()
        except BaseException:
            self.cut()
            raise
        return Answer(self, self._parser.get_status_code(), self._retry_after)

    async def read_body(self) -> bytes:
        """Return the next piece of the body, b"" at its end."""
        while not self._pieces:
            if self._whole:
                return b""
            if self.lost:
                raise Broken(
                    self._why or "the server closed the connection before the end of an answer"
                )
            await self._wait()
        data = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._waiting = 0
        if self._paused and not self.lost and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def leave(self) -> None:
        """See `Answer.leave`."""
        if not self._was_requested:
            return
        if not self._whole or self.lost or not self._kept:
            self.cut()
            return
        if self._paused and self._transport is not None:
            self._transport.resume_reading()
        self.used = True
        self._begin()
        self.idle_since = self._loop.time()
        self._on_idle(self)

    def cut(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        self._end("it is incomplete")

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end(self, why: str) -> None:
        if not self.lost:
            self.lost = True
            self._why = self._why or why
            self._writable.set()
            self._wake()
            self._on_lost(self)

    # --- asyncio.Protocol -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by their class

    def connection_lost(self, error: Exception | None) -> None:
        if error is None and not self.lost and self._head and not self._framed:
            self._whole = True  # a body without a length ends where the server ends its connection
        self._end(str(error) if error else "")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if not self._was_requested:
            self._why = "the server sent data without a request"
            self.cut()
            return
        if not self._head:
            self._came += len(data)
        try:
            self._parser.feed_data(data)
            if not self._head and self._came > _HEAD:
                raise Broken(f"a head of more than {_HEAD} bytes")
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, Broken) as error:
            self._why = f"the answer is not HTTP: {error.__context__ or error}"
            self._head = self._whole = False  # nor is what came before it to be believed
            self._pieces.clear()
            self.cut()
            return
        if self._waiting > BUFFER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    # --- httptools ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """An answer, or one that only says to wait, begins."""
        if self._whole:
            raise Broken("two answers to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head."""
        name = name.lower()
        if name in (b"content-length", b"transfer-encoding"):
            self._framed = True
        elif name == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is there."""
        status = self._parser.get_status_code()
        self._head = status >= 200
        self._kept = self._parser.should_keep_alive()
        self._framed = self._framed or status in (204, 304)

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._pieces.append(data)
        self._waiting += len(data)

    def on_message_complete(self) -> None:
        """The answer is over; after a head that only says to wait, the true one comes."""
        self._whole = self._head
