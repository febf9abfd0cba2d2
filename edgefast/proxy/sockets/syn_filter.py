"""SYN filter: a listening socket accepts no new connection, but completes those that have begun.

In: a listening TCP socket.
Out: nothing. The kernel drops SYN segments for the socket, completes handshakes in progress, and
workers can empty the accept queue. Without the filter, a connection that arrives between the last
`accept` and `close` is reset. A client repeats a dropped SYN after a second and finds a closed port
or another instance.
Must never: fail the drain; where the filter is not permitted, the socket closes without it.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import socket
import struct

__all__ = ["drop_new_connections", "take_new_connections"]

log = logging.getLogger(__name__)

_SO_ATTACH_FILTER = 26  # asm-generic/socket.h
_SO_DETACH_FILTER = 27
#: Classic BPF over the TCP header (where socket filters of TCP begin): a SYN without ACK is dropped.
_PROGRAM = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in (
        (0x30, 0, 0, 13),  # A = flags
        (0x54, 0, 0, 0x12),  # A &= SYN|ACK
        (0x15, 0, 1, 0x02),  # A == SYN?
        (0x06, 0, 0, 0),  # drop
        (0x06, 0, 0, 0xFFFFFFFF),  # keep
    )
)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def drop_new_connections(sock: socket.socket) -> None:
    """Attach the filter; accepted connections inherit it, and it means nothing to them."""
    program = _Program(len(_PROGRAM) // 8, _PROGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(program))
    except OSError as error:
        log.debug("listener: no filter on a closing socket: %s", error)


def take_new_connections(sock: socket.socket) -> None:
    """Take the filter off: whoever had the socket before may have begun to close it."""
    with contextlib.suppress(OSError):  # there is none
        sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
