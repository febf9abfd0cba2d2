"""Acceptors: accept connections on the sockets that the agent made.

In: sockets by (bind address, bind port, number), the ports of the applied table, the selectors of
their TLS contexts.
Out: sockets on which the engine accepts. A socket outlives its acceptor. A port can therefore
change its acceptor without losing its queue, and without another descriptor. Before a socket
closes, its queue is emptied, because closing a member of a SO_REUSEPORT group resets the
connections that wait in it.
Must never: accept on a port without an applied listener.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Container, Iterable, Mapping
from typing import NamedTuple, Protocol

from edgefast.core import TlsContext
from edgefast.ir.layer4 import Transport
from edgefast.proxy.process.reserved_descriptors import is_shortage
from edgefast.proxy.settings import ACCEPT_BACKLOG
from edgefast.proxy.sockets.bind_address import Place, Seat, host_of, transport_at
from edgefast.proxy.sockets.syn_filter import drop_new_connections

__all__ = ["Acceptors", "PortUse"]

log = logging.getLogger(__name__)

#: Seconds for handshakes of TCP under way to end after new ones are dropped: a long round trip.
_LAST_HANDSHAKES = 0.2


Choose = Callable[[str], TlsContext | None]


class PortUse(NamedTuple):
    """How a bind port is served: the listeners' port, where TLS is spoken who chooses contexts by server name, and of which
    transport it is if what comes is passed on unread."""

    port: int
    choose: Choose | None
    stream: Transport | None = None
    addresses: tuple[str, ...] = ()  # of the listeners; empty: all


#: A bind port, and a bind address of it or "" for all.
BindKey = tuple[int, str]
#: No port.
_NONE: Mapping[BindKey, PortUse] = {}


class Accepting(Protocol):
    """What `Engine.listen` and its like return."""

    def take(self, most: int) -> int:
        """Accept what waits now, at most so many; returns how many."""

    def stop(self) -> int:
        """Accept no more; the queue lives on in the socket."""

    def retire(self) -> int:
        """Stop, and let the connections of the port end: others are made under another rule."""


class _Running(NamedTuple):
    """A port in service."""

    use: PortUse
    accepting: Accepting


class Acceptors:
    """Accepts connections on the sockets that the agent bound."""

    def __init__(
        self,
        listen: Callable[[int, int, Choose | None, tuple[str, ...]], Accepting],
        listen_stream: Callable[[int, int, tuple[str, ...]], Accepting],
        listen_datagrams: Callable[[int, int, tuple[str, ...]], Accepting],
    ) -> None:
        """`listen` and the others are the engine's."""
        self._listen = listen
        self._listen_stream = listen_stream
        self._listen_datagrams = listen_datagrams
        self._sockets: dict[Seat, socket.socket] = {}
        self._running: dict[Seat, _Running] = {}
        self._reconciling = asyncio.Lock()
        #: Set when a port could not be served for want of memory: `reconcile` again.
        self.starved = asyncio.Event()

    def add(self, place: Seat, descriptor: int) -> None:
        """Own a listening socket; it is served by the next `reconcile`."""
        previous = self._sockets.get(place)
        if previous is not None:
            self._stop(place)
            previous.close()
        self._sockets[place] = socket.socket(fileno=descriptor)

    def retire(
        self, uses: Mapping[BindKey, PortUse], datagrams: Mapping[BindKey, PortUse] = _NONE
    ) -> None:
        """Accept no more where a port is served otherwise now; `reconcile` serves it again."""
        for place, running in list(self._running.items()):
            use = _find_use(place, uses, datagrams)
            if use is not None and use != running.use:
                self._running.pop(place).accepting.retire()

    async def reconcile(
        self, uses: Mapping[BindKey, PortUse], datagrams: Mapping[BindKey, PortUse] = _NONE
    ) -> None:
        """Serve the sockets whose bind port is in `uses`, each as it says there; those of UDP by `datagrams`.

        One whose port is no longer in use goes on until `close` has emptied its queue. Where a port is served otherwise than before (another
        TLS rule: what clients have to show, and to whom) connections from before end with the answer that is under way.
        """
        async with self._reconciling:
            self.starved.clear()
            self.retire(uses, datagrams)
            for place, sock in list(self._sockets.items()):
                wanted = _find_use(place, uses, datagrams)
                if wanted is not None and place not in self._running:
                    self._start(place, sock, wanted)

    def _start(self, place: Seat, sock: socket.socket, use: PortUse) -> None:
        sock.setblocking(False)
        try:
            accepting: Accepting
            if use.stream == "UDP":
                accepting = self._listen_datagrams(sock.fileno(), use.port, use.addresses)
            elif use.stream:
                accepting = self._listen_stream(sock.fileno(), use.port, use.addresses)
            else:
                accepting = self._listen(sock.fileno(), use.port, use.choose, use.addresses)
        except (OSError, MemoryError) as error:
            if not is_shortage(error):
                raise
            log.error("%s port %d cannot be served yet: %s", *place[:2], error)
            self.starved.set()
            return
        self._running[place] = _Running(use, accepting)

    def _stop(self, place: Seat) -> None:
        running = self._running.pop(place, None)
        if running is not None:
            running.accepting.stop()

    async def close(self, places: Iterable[Seat]) -> None:
        """Take what waits in the queues of `places`, then close their sockets."""
        closing: list[tuple[socket.socket, _Running | None]] = []
        for place in places:
            sock = self._sockets.pop(place, None)
            if sock is not None:
                if transport_at(place) == "TCP":
                    drop_new_connections(sock)
                closing.append((sock, self._running.pop(place, None)))
        if closing:
            await asyncio.sleep(_LAST_HANDSHAKES)
        for sock, running in closing:
            if running is not None:
                running.accepting.take(ACCEPT_BACKLOG + 1)
                running.accepting.stop()
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


def _find_use(
    place: Seat, uses: Mapping[BindKey, PortUse], datagrams: Mapping[BindKey, PortUse]
) -> PortUse | None:
    """Return how a socket is served; None: its port is served at other addresses, or not at all."""
    known = datagrams if transport_at(place) == "UDP" else uses
    return known.get((place[1], host_of(place))) or known.get((place[1], ""))
