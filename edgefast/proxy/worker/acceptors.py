"""Acceptors: the worker's servers on the sockets that the agent made.

In: sockets by (bind address, bind port, number), the ports that the applied table serves, their TLS
contexts. Out: accepted connections in the engine's protocols. A socket outlives its server: the
server of an HTTP port runs on a duplicate, that of an HTTPS port (handshakes.py) on the socket
itself, so that a port can turn from one to the other without losing its queue. Other certificates
or rules of an HTTPS port need neither a new server nor a descriptor. Closing empties the queue
first, because closing a member of a SO_REUSEPORT group resets what waits in it. Must never begin to
accept on a port without applied listener.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Container, Iterable, Mapping

from edgefast.proxy.process.reserve import RESERVE, is_shortage
from edgefast.proxy.settings import ACCEPT_BACKLOG
from edgefast.proxy.sockets.listeners import Place, Seat
from edgefast.proxy.sockets.synfilter import drop_new_connections
from edgefast.proxy.worker.handshakes import Handshakes, PortUse, ProtocolFactory

__all__ = ["Acceptors", "PortUse"]

log = logging.getLogger(__name__)

#: Seconds for handshakes of TCP under way to end after new ones are dropped: a long round trip.
_LAST_HANDSHAKES = 0.2


class _Running:
    """A port in service; `server` is None for HTTPS."""

    def __init__(self, use: PortUse, server: asyncio.AbstractServer | None) -> None:
        self.use = use
        self.server = server


class Acceptors:
    """See the module's text."""

    def __init__(
        self, factory: Callable[[int, bool], ProtocolFactory], handshakes: Handshakes
    ) -> None:
        """`factory` is `Engine.factory`."""
        self._factory = factory
        self._handshakes = handshakes
        self._sockets: dict[Seat, socket.socket] = {}
        self._running: dict[Seat, _Running] = {}
        self._reconciling = asyncio.Lock()
        #: Set when a port could not be served for want of descriptors: `reconcile` again.
        self.starved = asyncio.Event()

    def add(self, place: Seat, descriptor: int) -> None:
        """Own a listening socket; it is served by the next `reconcile`."""
        previous = self._sockets.get(place)
        if previous is not None:
            self._stop(place)
            previous.close()
        self._sockets[place] = socket.socket(fileno=descriptor)

    async def reconcile(self, uses: Mapping[int, PortUse]) -> None:
        """Serve the sockets whose bind port is in `uses`, each as it says there.

        A server whose port is no longer in use goes on until `close` has emptied its queue.
        """
        async with self._reconciling:
            self.starved.clear()
            for place, running in list(self._running.items()):
                use = uses.get(place[1], running.use)
                if use == running.use:
                    continue
                if running.server is None and use.context is not None:
                    running.use = use
                else:
                    self._stop(place)
            for place, sock in list(self._sockets.items()):
                wanted = uses.get(place[1])
                if wanted is not None and place not in self._running:
                    await self._start(place, sock, wanted)

    async def _start(self, place: Seat, sock: socket.socket, use: PortUse) -> None:
        if use.context is not None:
            running = self._running[place] = _Running(use, None)
            self._handshakes.listen(sock, lambda: running.use)
            return
        try:
            server = await self._serve(sock, use)
        except OSError as error:
            if not is_shortage(error):
                raise
            log.error("%s port %d cannot be served yet: %s", *place[:2], error.strerror)
            self.starved.set()
            return
        if self._sockets.get(place) is sock:
            self._running[place] = _Running(use, server)
        else:  # closed while the server came up: it runs on a duplicate that must not stay
            server.close()

    def _stop(self, place: Seat) -> None:
        running = self._running.pop(place, None)
        if running is not None:
            self._halt(self._sockets[place], running)

    def _halt(self, sock: socket.socket, running: _Running) -> None:
        """Accept no more; the queue lives on in the socket."""
        if running.server is None:
            self._handshakes.ignore(sock)
        else:
            running.server.close()

    async def _serve(self, sock: socket.socket, use: PortUse) -> asyncio.AbstractServer:
        duplicate = RESERVE.spare(sock.dup)
        duplicate.setblocking(False)
        try:
            return await asyncio.get_running_loop().create_server(
                self._factory(use.port, False), sock=duplicate, backlog=ACCEPT_BACKLOG
            )
        except BaseException:
            duplicate.close()
            raise

    async def close(self, places: Iterable[Seat]) -> None:
        """Take what waits in the queues of `places`, then close their sockets."""
        closing: list[tuple[socket.socket, _Running | None]] = []
        for place in places:
            sock = self._sockets.pop(place, None)
            if sock is not None:
                drop_new_connections(sock)
                closing.append((sock, self._running.pop(place, None)))
        if closing:
            await asyncio.sleep(_LAST_HANDSHAKES)
        async with asyncio.TaskGroup() as adoptions:
            for sock, running in closing:
                if running is not None:
                    self._halt(sock, running)
                    for accepted in _empty(sock):
                        if running.use.context is not None:
                            self._handshakes.begin(accepted, running.use)
                        else:
                            adoptions.create_task(self._adopt(accepted, running.use))
                sock.close()

    async def close_all(self) -> None:
        """Close every socket, as `close` does."""
        await self.close(list(self._sockets))

    async def leave(self, kept: Container[Place] | None = None) -> None:
        """Accept no more: the queues of `kept` (None: all) live on elsewhere, the others are emptied."""
        staying = [seat for seat in self._sockets if kept is None or seat[:2] in kept]
        for seat in staying:
            self._stop(seat)
            self._sockets.pop(seat).close()
        await self.close_all()

    def descriptors(self) -> list[int]:
        """List the sockets, which stay this side's."""
        return [sock.fileno() for sock in self._sockets.values()]

    async def _adopt(self, accepted: socket.socket, use: PortUse) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._factory(use.port, False), accepted
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
