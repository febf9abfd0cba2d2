"""An origin whose answers are as large as whoever reads them likes: thousands of connections, no memory for what nobody takes.

In: requests, read by the strict parser. Out: for `/large/N` so many bytes, a piece at a time as the socket takes them; for anything else
what answers.py makes of it. It runs on a thread of its own. Must never answer a request that is not complete.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

from origin.answers import answer_target
from origin.message import RequestReader

_PIECE = b"x" * 65536
_BUFFER = 65536  # bytes: who reads nothing costs a piece or two, not the megabytes that a kernel would hold for it


class _Link(asyncio.Protocol):
    """One connection."""

    transport: Any

    def __init__(self, links: set[_Link]) -> None:
        self._links = links
        self._reader = RequestReader()
        self._left = 0
        self._room = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._links.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._links.discard(self)

    def data_received(self, data: bytes) -> None:
        for message in self._reader.feed(data):
            if message.target.startswith(b"/large/"):
                self._left = int(message.target[7:])
                self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self._left)
                self._go_on()
            else:
                self.transport.write(answer_target(message))

    def _go_on(self) -> None:
        while self._left and self._room and not self.transport.is_closing():
            piece = _PIECE[: self._left]
            self._left -= len(piece)
            self.transport.write(piece)

    def pause_writing(self) -> None:
        self._room = False

    def resume_writing(self) -> None:
        self._room = True
        self._go_on()


class LargeOrigin:
    """Start with `with LargeOrigin() as origin`."""

    port: int

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._links: set[_Link] = set()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="large-origin", daemon=True
        )

    def __enter__(self) -> LargeOrigin:
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)  # of what it accepts, too
        self.port = int(listener.getsockname()[1])
        self._server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Link(self._links), sock=listener, backlog=4096)
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._server.close()
        for link in list(self._links):
            link.transport.abort()
        self._loop.run_until_complete(asyncio.sleep(0))  # in which they are closed
        self._loop.close()
