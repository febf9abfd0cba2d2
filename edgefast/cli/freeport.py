"""Free ports on loopback, for commands that choose the ports of their listeners.

In: the usual port of each listener.
Out: ports that no process listens on, on 127.0.0.1 and ::1: the usual ones if they are free.
Must never: return one port twice.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterable

__all__ = ["choose_ports"]

_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
#: Ports of the kernel that are tried for one listener.
_TRIES = 20


def choose_ports(usual: Iterable[int]) -> tuple[int, ...]:
    """Return one port for each of `usual`; raises OSError when the kernel has none left.

    Another process can take a port before it is used: the listener then reports PortUnavailable.
    """
    chosen: list[int] = []
    with contextlib.ExitStack() as held:
        for port in usual:
            chosen.append(_choose(port, held))
    return tuple(chosen)


def _choose(usual: int, held: contextlib.ExitStack) -> int:
    """Return the port with its sockets open, so that the next one differs."""
    error = OSError(errno.EADDRINUSE, "no free port on 127.0.0.1")
    for at in range(_TRIES + 1):
        try:
            return _hold(usual if at == 0 else 0, held)
        except OSError as one:
            error = one
    raise error


def _hold(port: int, held: contextlib.ExitStack) -> int:
    with contextlib.ExitStack() as opened:
        for family, host in _LOOPBACK:
            try:
                sock = opened.enter_context(socket.socket(family, socket.SOCK_STREAM))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((host, port))
                sock.listen(1)
            except OSError as error:
                no_family = error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
                if family == socket.AF_INET6 and no_family:
                    continue
                raise
            port = sock.getsockname()[1]
        held.enter_context(opened.pop_all())
    return port
