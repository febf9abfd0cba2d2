"""Inherited: listening sockets that existed before this process.

In: sockets that a service manager passes at start (sd_listen_fds(3): its own sockets or those of
its descriptor store), and those of a predecessor (handover/socket_receiver.py).
Out: groups of sockets by (bind address, bind port) for listeners.py, and those of the operator's
servers. The address is read from the socket; the name only separates servers from listeners.
Must never: pass a descriptor to children, or keep one that is not used.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
from collections.abc import MutableMapping

from edgefast.httpd.address import EVERYWHERE, Address
from edgefast.proxy.sockets.bind_address import Place, make_bind_address

__all__ = ["MEMORIES", "SERVERS", "Inherited", "receive_sockets"]

log = logging.getLogger(__name__)

#: Names of the operator's servers; everything else is a listener's.
SERVERS = ("admin", "metrics", "ready")
#: What is no socket: the memory that rate limits are counted in (limits/memory.py).
MEMORY = "rate-limits"
#: What session tickets are made with (tls/ticket_memory.py).
TICKETS = "ticket-keys"
MEMORIES = (MEMORY, TICKETS)
#: The first descriptor that a service manager passes (SD_LISTEN_FDS_START).
_FIRST = 3
#: Descriptors that are taken: a number from the environment is no reason to loop for ever.
_MOST = 65_536


class Inherited:
    """Listening sockets that existed before this process started.

    Who takes a socket owns it; `close` ends the rest.
    """

    def __init__(self) -> None:
        self._groups: dict[Place, list[socket.socket]] = {}
        self._servers: list[socket.socket] = []
        self._seen: set[int] = set()  # inodes: the same socket may come from two sides
        self._memories: dict[str, int] = {}
        self.names: set[str] = set()  # of what a service manager has in its store

    def __len__(self) -> int:
        return len(self._servers) + sum(map(len, self._groups.values()))

    @property
    def places(self) -> tuple[Place, ...]:
        """The places of listeners that have not been taken."""
        return tuple(self._groups)

    def add(self, name: str, descriptor: int) -> bool:
        """Own a descriptor; False when it is no listening TCP or bound UDP socket (and none of MEMORIES), or here already."""
        os.set_inheritable(descriptor, False)
        if name in MEMORIES and stat.S_ISREG(os.fstat(descriptor).st_mode):
            return self._add_memory(name, descriptor)
        try:
            sock = socket.socket(fileno=descriptor)
        except OSError:
            os.close(descriptor)
            return False
        inode = os.fstat(descriptor).st_ino
        if inode in self._seen or not _is_listening(sock):
            sock.close()
            return False
        self._seen.add(inode)
        sock.setblocking(False)
        if name in SERVERS:
            self._servers.append(sock)
        else:
            self._groups.setdefault(_place_of(sock), []).append(sock)
        return True

    def _add_memory(self, name: str, descriptor: int) -> bool:
        """Each of several workers gives the same: one is enough."""
        if self._memories.setdefault(name, descriptor) != descriptor:
            os.close(descriptor)
        return True

    def take_memory(self, name: str) -> int | None:
        """Return the descriptor of one of MEMORIES, if there is one; the caller owns it."""
        return self._memories.pop(name, None)

    def group(self, place: Place) -> list[socket.socket]:
        """Return the sockets of a place, which stay here."""
        return self._groups.get(place, [])

    def take_group(self, place: Place) -> list[socket.socket]:
        """Return the sockets of a place, in the order in which they came; the caller owns them."""
        return self._groups.pop(place, [])

    def take_server(self, address: Address) -> socket.socket | None:
        """Return a server's socket that listens on `address`."""
        wanted = {(address.host, address.port)}
        if address.host == EVERYWHERE:
            wanted.add(("0.0.0.0", address.port))
        for sock in self._servers:
            if _place_of(sock) in wanted:
                self._servers.remove(sock)
                return sock
        return None

    def close_servers(self) -> None:
        """Close the servers' sockets that nobody has taken: their addresses are others now."""
        while self._servers:
            self._servers.pop().close()

    def close(self) -> None:
        """Close what nobody has taken."""
        self.close_servers()
        while self._memories:
            os.close(self._memories.popitem()[1])
        for place in self.places:
            for sock in self.take_group(place):
                sock.close()


def receive_sockets(environment: MutableMapping[str, str]) -> Inherited:
    """Take what a service manager passes; the variables are for this process only, and go."""
    pid, count, names = (
        environment.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
    )
    inherited = Inherited()
    if pid != str(os.getpid()) or not count.isdecimal():
        return inherited
    many = min(int(count), _MOST)
    named = [*names.split(":"), *[""] * many][:many]
    inherited.names.update(one for one in named if one)
    for descriptor, name in enumerate(named, _FIRST):
        try:
            if not inherited.add(name, descriptor):
                log.warning(
                    "descriptor %d (%s) is not a listening socket and is not used", descriptor, name
                )
        except OSError as error:
            log.warning("descriptor %d (%s) cannot be used: %s", descriptor, name, error.strerror)
    if len(inherited):
        log.info("service manager: it passed %d listening sockets", len(inherited))
    return inherited


def _is_listening(sock: socket.socket) -> bool:
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    if sock.type == socket.SOCK_DGRAM:
        return bool(sock.getsockname()[1] and not _is_connected(sock))
    return (
        sock.type == socket.SOCK_STREAM
        and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    )


def _is_connected(sock: socket.socket) -> bool:
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


def _place_of(sock: socket.socket) -> Place:
    host, port = sock.getsockname()[:2]
    return make_bind_address(host, port, "UDP" if sock.type == socket.SOCK_DGRAM else "TCP")
