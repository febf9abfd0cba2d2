"""Local addresses: whether the kernel delivers an IP address to this machine or network namespace.

In: an address. Out: True if packets to it stay here: loopback, every address of an interface (secondary ones too), and ranges that a route
of type `local` covers. One RTM_GETROUTE query; the answer is not cached, because addresses come and go. A process has one netlink socket, which
all its threads share; a forked process opens its own. Where netlink sockets are not allowed, a socket is bound to the address instead. Used for
each connection to a port number that this proxy listens on.
Must never: resolve a name, send a packet, or read the answer to another query.
Source: rtnetlink(7), netlink(7).
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
from ipaddress import IPv6Address

from edgefast.netaddr import Address, parse_address

__all__ = ["is_local", "leads_to"]

_RTM_GETROUTE = 26
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_RTA_DST = 1
_RTN_LOCAL = 2
_RTN_ANYCAST = 4  # of IPv6: accepted by this machine as well
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
_ROUTE = struct.Struct("=8BI")  # struct rtmsg
_ATTRIBUTE = struct.Struct("=HH")  # struct rtattr
_ANSWER_LIMIT = 8192
#: Seconds for the kernel's answer, which comes at once.
_DEADLINE = 1
_TIMEVAL = struct.Struct("@ll")
_SEQUENCES = 1 << 32


def leads_to(address: str, port: int, ports: tuple[int, ...]) -> bool:
    """Tell whether a connection there would reach one of these ports of this machine. Text that is not an address: True."""
    if port not in ports:
        return False
    try:
        return is_local(parse_address(address))
    except ValueError:
        return True


def is_local(address: Address) -> bool:
    """Tell whether an address is of this machine. An address without a route, and an unexpected answer: True."""
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if (
        address.is_loopback
        or address.is_unspecified
        or (address.version == 4 and address.packed[0] == 0)
    ):
        return True
    try:
        return _reads_local(_kernel.ask(address))
    except OSError:
        return _can_bind(address)


class _Kernel:
    """The netlink socket of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._sequence = 0

    def ask(self, address: Address) -> bytes:
        """Return the kernel's answer for the route to an address. Raises OSError."""
        with self._lock:
            if self._sock is not None:
                try:
                    return self._exchange(address)
                except OSError:
                    self.close()
            try:
                return self._exchange(address)
            except OSError:
                self.close()
                raise

    def close(self) -> None:
        """Close the socket; the next query opens another one."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _exchange(self, address: Address) -> bytes:
        if self._sock is None:
            self._sock = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
            )
            # Not settimeout: it costs a call of poll() before each send and each read.
            self._sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL.pack(_DEADLINE, 0)
            )
        self._sequence = (self._sequence + 1) % _SEQUENCES
        self._sock.sendto(_question(address, self._sequence), (0, 0))
        answer = self._sock.recv(_ANSWER_LIMIT)
        if len(answer) < _HEADER.size or _HEADER.unpack_from(answer)[3] != self._sequence:
            raise OSError(errno.EPROTO, "the answer belongs to another query")
        return answer


_kernel = _Kernel()


def _after_fork() -> None:
    """A socket of two processes would mix their answers, and the lock may belong to a thread of the parent."""
    global _kernel
    _kernel.close()
    _kernel = _Kernel()


os.register_at_fork(after_in_child=_after_fork)


def _question(address: Address, sequence: int) -> bytes:
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    packed = address.packed
    route = _ROUTE.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, 0)
    body = route + _ATTRIBUTE.pack(_ATTRIBUTE.size + len(packed), _RTA_DST) + packed
    return _HEADER.pack(_HEADER.size + len(body), _RTM_GETROUTE, _NLM_F_REQUEST, sequence, 0) + body


def _reads_local(answer: bytes) -> bool:
    """Read the route's type. An error, such as an address without a route, reads as local: a connection would fail anyway."""
    if len(answer) < _HEADER.size + _ROUTE.size or _HEADER.unpack_from(answer)[1] == _NLMSG_ERROR:
        return True
    return answer[_HEADER.size + 7] in (_RTN_LOCAL, _RTN_ANYCAST)


def _can_bind(address: Address) -> bool:
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.bind((str(address), 0))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True
