"""Acceptor of the small HTTP server: accepts the connections of one bound socket.

In: a socket, the connection limit (connection_limit.py) and the request handler.
Out: accepted connections in `Connections` (connections.py). The acceptor empties the kernel's
accept queue at once, so idle connections do not delay a request. It keeps one file descriptor in
reserve. When the process has no free descriptor, the acceptor serves waiting connections one after
another with it.
Must never: wait for a client.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import select
import socket
from collections.abc import Callable, Coroutine

from edgefast.daemon.logs import LogThrottle
from edgefast.httpd.address import EVERYWHERE, Address, family_of
from edgefast.httpd.connection_limit import ConnectionLimit
from edgefast.httpd.connections import ClientConnection, Connections

__all__ = ["Acceptor", "bind_server"]

log = logging.getLogger(__name__)

_NO_FAMILY = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT}
#: Connections that the kernel queues, as far as net.core.somaxconn allows: one that it drops comes again a second later.
_BACKLOG = 4096
#: Connections accepted in one loop iteration; each is read before the connection limit can close it.
_AT_ONCE = 64
#: Seconds until it is tried again, for want of descriptors; the end of a connection may bring one.
_SHORT = 0.02

#: Seconds after which connections without a request end, when another process serves the socket.
_PARTING = 1.0


def bind_server(address: Address) -> socket.socket:
    """Bind and listen; EVERYWHERE is both families, or IPv4 where there is no other. Raises OSError."""
    try:
        return _bind(address)
    except OSError as error:
        if address.host != EVERYWHERE or error.errno not in _NO_FAMILY:
            raise
        return _bind(Address("0.0.0.0", address.port))


def _bind(address: Address) -> socket.socket:
    sock = socket.socket(family_of(address.host), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.host == EVERYWHERE:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((address.host, address.port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


class Acceptor:
    """Accepts the connections of one listening socket for a small HTTP server."""

    def __init__(
        self,
        sock: socket.socket,
        places: ConnectionLimit[ClientConnection],
        answer: Callable[[ClientConnection], Coroutine[None, None, bool]],
        admits: Callable[[socket.socket], bool] | None = None,
    ) -> None:
        """`answer`: see `Connections`. `admits`: tells whether a connection may send requests."""
        self._admits = admits
        if sock.family == socket.AF_UNIX:
            self.address = Address(f"@{sock.getsockname()[1:].decode()}", 0)
        else:
            host, port = sock.getsockname()[:2]
            self.address = Address(host, port)
        self._sock = sock
        self._idle_connections = Connections(places, answer, self._fill)
        self._at_once = min(_AT_ONCE, max(1, places.most // 2))
        self._spare = -1
        self._retired = False
        self._short = LogThrottle(log)
        self._strangers = LogThrottle(log)
        self._fill()

    async def run(self) -> None:
        """Let connections in until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._idle_connections.open(tasks)
                if not self._retired:
                    loop.add_reader(self._sock, self._let_in)
                try:
                    await loop.create_future()
                finally:
                    if self._sock.fileno() >= 0:
                        loop.remove_reader(self._sock)
                    self._idle_connections.close()
        finally:
            self._sock.close()
            self._part()
            if self._spare >= 0:
                os.close(self._spare)

    def fileno(self) -> int:
        """Return the listening socket's descriptor."""
        return self._sock.fileno()

    def retire(self) -> None:
        """Let nobody in any more: another process serves the socket. Who is in has a moment for a last request."""
        self._retired = True
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._sock)
        loop.call_later(_PARTING, self._part)

    def shut(self) -> None:
        """Close the listening socket after `retire`."""
        self._sock.close()

    def _part(self) -> None:
        while self._idle_connections.give_up():
            pass

    def _let_in(self) -> None:
        """Accept what is queued."""
        for _ in range(self._at_once):
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if self._is_queued():
                    self._on_shortage(error)
                return
            sock.setblocking(False)
            if self._admits is not None and not self._admits(sock):
                self._strangers.warn("%s refused a process of another user", self.address)
                sock.close()
                continue
            self._idle_connections.enter(sock)

    def _is_queued(self) -> bool:
        """Tell whether somebody waits: accept(2) lacks a descriptor before it looks."""
        look = select.poll()
        look.register(self._sock, select.POLLIN)
        return bool(look.poll(0))

    def _on_shortage(self, error: OSError) -> None:
        """Free a descriptor: close the oldest idle connection, else use the reserve, one connection at a time."""
        self._short.warn(
            "%s is out of descriptors for connections: %s", self.address, error.strerror
        )
        if not self._idle_connections.give_up() and self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
            with contextlib.suppress(OSError):
                sock, _ = self._sock.accept()
                sock.setblocking(False)
                self._idle_connections.enter(sock)
        # The socket stays readable: looking at it again at once would keep the loop busy.
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._sock)
        loop.call_later(_SHORT, self._look_again)

    def _look_again(self) -> None:
        if self._sock.fileno() >= 0 and not self._retired:
            asyncio.get_running_loop().add_reader(self._sock, self._let_in)

    def _fill(self) -> None:
        """Keep a descriptor back, when there is one."""
        if self._spare < 0 and self._sock.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
