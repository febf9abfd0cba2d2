"""Listeners: the agent's listening sockets, one per worker and (bind address, bind port).

In: the listeners of the newest table.
Out: sockets for workers, and a Problem for every unavailable address. The agent keeps its copies
while the port is served, so the queue of a dead worker waits for its replacement. Ports are added
and removed at run time; another `reconcile` retries failed binds. Inherited sockets (inherited.py)
are used unchanged, with their queues. Their number may differ from the number of workers: a worker
may have several, or workers share one.
Must never: accept, or close a socket while it is the last copy of a queue that a worker could still
empty.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from edgefast import ir
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.httpd.address import family_of
from edgefast.proxy.settings import ACCEPT_BACKLOG
from edgefast.proxy.sockets.bind_address import (
    Place,
    Seat,
    host_of,
    make_bind_address,
    show_bind_address,
    transport_at,
)
from edgefast.proxy.sockets.inherited import Inherited
from edgefast.proxy.sockets.syn_filter import take_new_connections

__all__ = ["Listeners"]

log = logging.getLogger(__name__)

#: Bytes of datagrams that may wait while a worker does something else, or is replaced; the kernel has a ceiling for it.
_DATAGRAM_QUEUE = 4 * 1024 * 1024
#: Seconds in which a place that was let go may still be with a worker that empties its queue.
_LEAVING = 5.0
_NO_FAMILY = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT}
_UNPRIVILEGED = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


class Listeners:
    """The agent's listening sockets: one per worker, address and port."""

    def __init__(
        self,
        binds: Sequence[str],
        workers: int,
        *,
        required: bool = False,
        inherited: Inherited | None = None,
    ) -> None:
        """`required`: an address family this machine lacks is a problem, not left out silently."""
        self._binds = tuple(binds)
        self._workers = workers
        self._required = required
        self._inherited = inherited or Inherited()
        self._sockets: dict[Place, tuple[socket.socket, ...]] = {}
        self._serials: dict[Place, int] = {}
        self._serial = 0
        self._left: dict[Place, float] = {}  # when a place was let go, on the monotonic clock
        self.problems: dict[Place, Problem] = {}
        #: Ports of the operator's servers; workers must not connect to them as backends.
        self.server_ports: tuple[int, ...] = ()

    @property
    def places(self) -> tuple[Place, ...]:
        """All places that are bound."""
        return tuple(self._sockets)

    def reconcile(self, listeners: Iterable[ir.Listener]) -> tuple[Place, ...]:
        """Bind what `listeners` ask for, let go of the rest; failures are in `problems`.

        Returns the places that are new.
        """
        wanted = self._places_of(listeners)
        for place in [one for one in self._sockets if one not in wanted]:
            self._let_go(place)
        self.problems = {}
        opened: list[Place] = []
        for place, names in wanted.items():
            if place in self._sockets or self._is_covered(place, wanted):
                continue
            if self._open(place, names):
                opened.append(place)
        if wanted:
            self._inherited.close()  # nobody asks for those
        return tuple(opened)

    def sockets_of(self, worker: int) -> list[tuple[Seat, int, int]]:
        """List a worker's sockets: seat, descriptor, and a serial that no other binding has."""
        found: list[tuple[Seat, int, int]] = []
        for place, group in self._sockets.items():
            numbers = range(worker, len(group), self._workers) or [worker % len(group)]
            serial = self._serials[place]
            found += [((*place, number), group[number].fileno(), serial) for number in numbers]
        return found

    def descriptors(self) -> list[int]:
        """List all sockets."""
        return [sock.fileno() for group in self._sockets.values() for sock in group]

    def descriptors_by_port(self) -> dict[str, list[int]]:
        """List all sockets by port: "80", "53-udp"."""
        found: dict[str, list[int]] = {}
        for place, group in self._sockets.items():
            name = f"{place[1]}-udp" if transport_at(place) == "UDP" else str(place[1])
            found.setdefault(name, []).extend(sock.fileno() for sock in group)
        return found

    def take_all(self) -> None:
        """Be sure that inherited sockets take connections: a predecessor may have begun to close them."""
        for place, group in self._sockets.items():
            for sock in group if transport_at(place) == "TCP" else ():
                take_new_connections(sock)

    def close(self) -> None:
        """Let go of everything; the workers hold the last copies then."""
        for place in tuple(self._sockets):
            self._let_go(place)

    def _let_go(self, place: Place) -> None:
        for sock in self._sockets.pop(place):
            sock.close()
        now = time.monotonic()
        self._left = {one: at for one, at in self._left.items() if now - at < _LEAVING}
        self._left[place] = now

    def _open(self, place: Place, names: Sequence[str]) -> bool:
        try:
            inherited = self._inherited.take_group(place)
            if inherited:
                self._sockets[place] = _complete_group(place, inherited, self._workers)
            else:
                beside = self._is_beside_own(place, time.monotonic())
                for sock in self._inherited_beside(
                    place
                ):  # the kernel allows it to their user only
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                self._sockets[place] = _bind_group(place, self._workers, shared=beside)
        except OSError as error:
            if error.errno in _NO_FAMILY and not self._required and host_of(place) == "::":
                return False
            ours = time.monotonic() - self._left.get(place, -_LEAVING) < _LEAVING
            self.problems[place] = _problem(place, names, error, ours)
            return False
        self._serial += 1
        self._serials[place] = self._serial
        return True

    def _places_of(self, listeners: Iterable[ir.Listener]) -> dict[Place, list[str]]:
        """Return the places that listeners ask for, with the names of these."""
        wanted: dict[Place, list[str]] = {}
        for listener in listeners:
            for host in listener.addresses or self._binds:
                place = make_bind_address(host, listener.bind_port, ir.transport_of(listener))
                wanted.setdefault(place, []).append(listener.name)
        return wanted

    def _is_beside_own(self, place: Place, now: float) -> bool:
        """Tell whether sockets of this process, or of its workers, are bound at an address that overlaps.

        A port moves between all addresses and one of them without a time in which it is bound at neither.
        """
        recent = (one for one, at in self._left.items() if now - at < _LEAVING)
        return bool(self._inherited_beside(place)) or any(
            _overlap(place, one) for one in (*self._sockets, *recent)
        )

    def _inherited_beside(self, place: Place) -> list[socket.socket]:
        """Return inherited sockets of other places that can take connections of this one; "::" may be bound for IPv4 too."""
        return [
            sock
            for one in self._inherited.places
            if _overlap(place, one) or (one == _wide(place) != place)
            for sock in self._inherited.group(one)
        ]

    def _is_covered(self, place: Place, wanted: Mapping[Place, Sequence[str]]) -> bool:
        """Tell whether an IPv6 socket takes the connections of an IPv4 place too, as a service manager may make them."""
        wide = _wide(place)
        if family_of(host_of(place)) != socket.AF_INET or wide not in wanted:
            return False
        return any(map(_is_dual, self._sockets.get(wide) or self._inherited.group(wide)))


def _wide(place: Place) -> Place:
    return make_bind_address("::", place[1], transport_at(place))


def _overlap(one: Place, other: Place) -> bool:
    """Tell whether one of two places is at all addresses of its family, and the other at one of them."""
    hosts = host_of(one), host_of(other)
    return (
        one[1] == other[1]
        and transport_at(one) == transport_at(other)
        and family_of(hosts[0]) == family_of(hosts[1])
        and hosts[0] != hosts[1]
        and not {"0.0.0.0", "::"}.isdisjoint(hosts)
    )


def _bind_group(place: Place, workers: int, *, shared: bool) -> tuple[socket.socket, ...]:
    """Bind and listen once per worker; OSError leaves nothing open.

    The first socket listens without SO_REUSEPORT, so the kernel gives the place to one process only,
    and at once; it is shared after that, which the kernel allows to this process's user. A second
    edgefast could otherwise join the group and take a share of the connections, silently. (Asking
    first and binding after that would leave a moment for two that start together.) `shared`: this
    process has sockets there already, at addresses that overlap, so the first one shares too.
    """
    group: list[socket.socket] = []
    try:
        for number in range(workers):
            sock = _socket(place, shared=shared or number > 0)
            group.append(sock)
            _start(sock)
            if number == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        for sock in group:
            sock.close()
        raise
    return tuple(group)


def _complete_group(
    place: Place, inherited: Sequence[socket.socket], workers: int
) -> tuple[socket.socket, ...]:
    """Take inherited sockets, and bind more for workers that have none.

    Where that is not permitted (the kernel wants one user for a group, and a service manager is another), or would
    be another kind of socket, workers share what there is.
    """
    group = list(inherited)
    for sock in group:
        _start(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if transport_at(place) == "TCP":
            take_new_connections(sock)
    try:
        while len(group) < workers and not _is_dual(group[0]):
            group.append(_listen(place))
    except OSError as error:
        log.info("%s: workers share a socket (%s)", show_bind_address(place), error.strerror)
    return tuple(group)


def _listen(place: Place) -> socket.socket:
    """Join a group. Raises OSError."""
    sock = _socket(place, shared=True)
    try:
        _start(sock)
    except OSError:
        sock.close()
        raise
    return sock


def _start(sock: socket.socket) -> None:
    if sock.type == socket.SOCK_STREAM:
        sock.listen(ACCEPT_BACKLOG)


def _is_dual(sock: socket.socket) -> bool:
    return (
        sock.family == socket.AF_INET6
        and sock.getsockname()[0] == "::"
        and sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0
    )


def _socket(place: Place, *, shared: bool) -> socket.socket:
    host, port = host_of(place), place[1]
    family = family_of(host)
    datagrams = transport_at(place) == "UDP"
    kind = socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM
    sock = socket.socket(family, kind | socket.SOCK_NONBLOCK)
    try:
        if datagrams:  # SO_REUSEADDR would let anybody join
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _DATAGRAM_QUEUE)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if not datagrams:
            # Before anybody listens: connections inherit it, also those that wait when a worker begins to accept.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


def _problem(place: Place, names: Sequence[str], error: OSError, ours: bool) -> Problem:
    """Say which listener has no port, why, and what to do."""
    address = show_bind_address(place)
    ref, path = place_listener(names[0])
    others = f" (and {len(names) - 1} more on this port)" if len(names) > 1 else ""
    match error.errno:
        case errno.EADDRINUSE if ours:
            why = f"the previous workers are still closing {address}"
            fix = "edgefast retries"
        case errno.EADDRINUSE:
            why = f"{address} is in use by another process"
            what = "-lunp" if transport_at(place) == "UDP" else "-ltnp"
            fix = f"stop it, or choose another port or --bind; find it with: ss {what} sport = :{place[1]}"
        case errno.EACCES | errno.EPERM:
            why = f"{address} is not permitted for user {os.geteuid()}"
            fix = (
                f"ports below {_first_unprivileged()} need CAP_NET_BIND_SERVICE: "
                f"setcap cap_net_bind_service+ep, AmbientCapabilities= in the unit, "
                f"or sysctl net.ipv4.ip_unprivileged_port_start={place[1]}"
            )
        case errno.EADDRNOTAVAIL:
            why = f"{host_of(place)} is not an address of this machine"
            fix = "check --bind, and spec.addresses of the Gateway, against: ip address"
        case errno.EMFILE | errno.ENFILE:
            why = f"{address}: out of file descriptors"
            fix = "raise ulimit -n or LimitNOFILE= in the unit"
        case _:
            why = f"{address}: {os.strerror(error.errno or 0)}"
            fix = "check --bind"
    return Problem(
        object=ref,
        path=f"{path}.port",
        reason="PortUnavailable",
        message=f"{why}{others}",
        hint=fix,
    )


def place_listener(name: str) -> tuple[ObjectRef, str]:
    """Return the object and the field path behind an ir.Listener's name: of a ListenerSet when it has five parts."""
    match name.split("/"):
        case [_, _, namespace, owner, listener]:
            ref = ObjectRef("ListenerSet", namespace, owner)
        case parts:
            namespace, owner, listener = (*parts, "", "", "")[:3]
            ref = ObjectRef("Gateway", namespace, owner)
    return ref, f"spec.listeners[name={listener}]"


def _first_unprivileged() -> int:
    try:
        return int(_UNPRIVILEGED.read_text())
    except (OSError, ValueError):
        return 1024
