"""Acceptors: the worker's servers on the sockets that the agent made.

In: sockets by (bind address, bind port), the ports that the applied table serves, their TLS
contexts. Out: accepted connections in the engine's protocols. A socket outlives its server: each
server runs on a duplicate, so that a port can turn from HTTP to HTTPS, or get other client
verification, without losing its queue. Closing empties the queue first, because closing a member of
a SO_REUSEPORT group resets what waits in it. Must never begin to accept on a port without applied listener.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from edgefast.proxy.listeners import Place
from edgefast.proxy.settings import ACCEPT_BACKLOG
from edgefast.proxy.synfilter import drop_new_connections

__all__ = ["Acceptors", "PortUse"]

log = logging.getLogger(__name__)

#: Seconds for a TLS handshake: the bound on the time to receive a request head (docs/http1.md).
_HANDSHAKE = 10.0
#: Seconds for handshakes under way to end after new ones are dropped: a long round trip.
_LAST_HANDSHAKES = 0.2
#: Seconds that TLS may take to say goodbye.
_TLS_SHUTDOWN = 1.0

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class PortUse(NamedTuple):
    """How a bind port is served: the listeners' port, and the context when it is HTTPS."""

    port: int
    context: ssl.SSLContext | None


class _Running(NamedTuple):
    use: PortUse
    server: asyncio.AbstractServer


class Acceptors:
    """See the module's text."""

    def __init__(self, factory: Callable[[int, bool], ProtocolFactory]) -> None:
        """`factory` is `Engine.factory`."""
        self._factory = factory
        self._sockets: dict[Place, socket.socket] = {}
        self._running: dict[Place, _Running] = {}

    def add(self, place: Place, descriptor: int) -> None:
        """Own a listening socket; it is served by the next `reconcile`."""
        previous = self._sockets.get(place)
        if previous is not None:
            previous.close()
        self._sockets[place] = socket.socket(fileno=descriptor)

    async def reconcile(self, uses: Mapping[int, PortUse]) -> None:
        """Serve the sockets whose bind port is in `uses`, each as it says there.

        A server whose port is no longer in use goes on until `close` has emptied its queue.
        """
        for place, running in list(self._running.items()):
            if uses.get(place[1], running.use) != running.use:
                running.server.close()
                del self._running[place]
        for place, sock in list(self._sockets.items()):
            use = uses.get(place[1])
            if use is None or place in self._running:
                continue
            server = await self._serve(sock, use)
            if self._sockets.get(place) is sock:
                self._running[place] = _Running(use, server)
            else:  # closed while the server came up: it runs on a duplicate that must not stay
                server.close()

    async def _serve(self, sock: socket.socket, use: PortUse) -> asyncio.AbstractServer:
        loop = asyncio.get_running_loop()
        factory = self._factory(use.port, use.context is not None)
        duplicate = sock.dup()
        duplicate.setblocking(False)
        try:
            if use.context is None:
                return await loop.create_server(factory, sock=duplicate, backlog=ACCEPT_BACKLOG)
            return await loop.create_server(
                factory,
                sock=duplicate,
                backlog=ACCEPT_BACKLOG,
                ssl=use.context,
                ssl_handshake_timeout=_HANDSHAKE,
                ssl_shutdown_timeout=_TLS_SHUTDOWN,
            )
        except BaseException:
            duplicate.close()
            raise

    async def close(self, places: Iterable[Place]) -> None:
        """Take what waits in the queues of `places`, then close their sockets."""
        closing: list[tuple[socket.socket, _Running | None]] = []
        for place in places:
            sock = self._sockets.pop(place, None)
            if sock is not None:
                drop_new_connections(sock)
                closing.append((sock, self._running.pop(place, None)))
        if closing:
            await asyncio.sleep(_LAST_HANDSHAKES)
        waiting: list[tuple[socket.socket, PortUse]] = []
        for sock, running in closing:
            if running is not None:
                # The server's duplicate is closed at once; the queue lives on in this one.
                running.server.close()
                waiting += [(accepted, running.use) for accepted in _empty(sock)]
            sock.close()
        async with asyncio.TaskGroup() as adoptions:
            for accepted, use in waiting:
                adoptions.create_task(self._adopt(accepted, use))

    async def close_all(self) -> None:
        """Close every socket, as `close` does."""
        await self.close(list(self._sockets))

    async def _adopt(self, accepted: socket.socket, use: PortUse) -> None:
        loop = asyncio.get_running_loop()
        factory = self._factory(use.port, use.context is not None)
        try:
            if use.context is None:
                await loop.connect_accepted_socket(factory, accepted)
            else:
                await loop.connect_accepted_socket(
                    factory,
                    accepted,
                    ssl=use.context,
                    ssl_handshake_timeout=_HANDSHAKE,
                    ssl_shutdown_timeout=_TLS_SHUTDOWN,
                )
        except OSError as error:
            log.debug("connection from the closing queue failed: %s", error)


def _empty(sock: socket.socket) -> list[socket.socket]:
    """Accept all that waits; the list is bounded by the backlog."""
    sock.setblocking(False)
    accepted: list[socket.socket] = []
    while len(accepted) <= ACCEPT_BACKLOG:
        try:
            connection, _ = sock.accept()
        except BlockingIOError:
            break
        except OSError as error:
            log.warning("accept queue cannot be emptied: %s", error)
            break
        connection.setblocking(False)
        accepted.append(connection)
    return accepted
