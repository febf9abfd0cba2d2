"""Handshakes: TLS connections from accept until the engine has them, counted and bounded.

In: readable listening sockets and how they are served. Out: connections in the engine's protocols.
A handshake costs 50 KiB and a descriptor before a single byte of HTTP, so it counts as a connection
from accept on: beyond spec.http.maxConnections it is closed before OpenSSL hears of it. It has as
long as a request head may take, at most 10 s. Must never spin when descriptors run out, and never
keep a connection that cannot be served.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple

from edgefast.proxy.process.reserve import RESERVE, is_shortage

__all__ = ["HANDSHAKE", "Handshakes", "PortUse"]

log = logging.getLogger(__name__)

#: Seconds for a TLS handshake: the bound on the time to receive a request head (docs/http1.md).
HANDSHAKE = 10.0
#: Seconds that TLS may take to say goodbye.
_TLS_SHUTDOWN = 1.0
#: Connections taken from one queue before the loop looks at everybody else again.
_BURST = 32
#: Seconds without accepting when not even turning away is possible.
_PAUSE = 0.1

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class PortUse(NamedTuple):
    """How a bind port is served: the listeners' port, and the context when it is HTTPS.

    The rest is for HTTPS, where the engine sees a connection late: connections per worker, and
    seconds for a handshake.
    """

    port: int
    context: ssl.SSLContext | None
    max_connections: int = 10_000
    handshake: float = HANDSHAKE


class Handshakes:
    """See the module's text."""

    def __init__(
        self,
        factory: Callable[[int, bool], ProtocolFactory],
        open_connections: Callable[[], int],
        count: Callable[[str, int], None],
    ) -> None:
        """`factory` is `Engine.factory`; `count` adds to a global cell (core/cells.py)."""
        self._factory = factory
        self._open = open_connections
        self._count = count
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: dict[socket.socket, Callable[[], PortUse]] = {}

    @property
    def active(self) -> int:
        """Connections in their handshake."""
        return len(self._tasks)

    def listen(self, sock: socket.socket, use: Callable[[], PortUse]) -> None:
        """Accept on `sock` from now on; every connection is served as `use` says at that time."""
        sock.setblocking(False)
        self._listening[sock] = use
        self._resume(sock)

    def ignore(self, sock: socket.socket) -> None:
        """Accept no more on `sock`; what waits stays in its queue."""
        del self._listening[sock]
        asyncio.get_running_loop().remove_reader(sock)

    def begin(self, connection: socket.socket, use: PortUse) -> None:
        """Take an accepted connection, or close it when there are too many."""
        if self._open() + self.active >= use.max_connections:
            self._count("connections_total", 1)
            self._count("connections_refused", 1)
            connection.close()
            return
        connection.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._shake(connection, use))
        self._tasks.add(task)
        self._count("handshakes_active", 1)
        task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._count("handshakes_active", -1)
        if not task.cancelled() and task.exception() is not None:
            log.error("a TLS connection could not be taken", exc_info=task.exception())

    async def _shake(self, connection: socket.socket, use: PortUse) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._factory(use.port, True),
                connection,
                ssl=use.context,
                ssl_handshake_timeout=use.handshake,
                ssl_shutdown_timeout=_TLS_SHUTDOWN,
            )
        except OSError as error:  # ssl.SSLError is one
            self._count("handshakes_failed", 1)
            log.debug("TLS handshake failed: %s", error)

    def _accept(self, sock: socket.socket) -> None:
        for _ in range(_BURST):
            try:
                connection, _ = sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if is_shortage(error) and not self._turn_away(sock):
                    loop = asyncio.get_running_loop()
                    loop.remove_reader(sock)
                    loop.call_later(_PAUSE, self._resume, sock)
                return  # else: reset while it waited; the next one has its turn
            self.begin(connection, self._listening[sock]())

    def _resume(self, sock: socket.socket) -> None:
        if sock in self._listening:
            asyncio.get_running_loop().add_reader(sock, self._accept, sock)

    def _turn_away(self, sock: socket.socket) -> bool:
        """Close those who wait: a client that knows at once is better off than one that waits."""
        turned = 0
        with RESERVE.lent():
            try:
                while turned < _BURST:
                    sock.accept()[0].close()
                    turned += 1
            except OSError:
                pass  # the queue is empty, or others have taken what was lent
        self._count("connections_total", turned)
        self._count("connections_refused", turned)
        return turned > 0
