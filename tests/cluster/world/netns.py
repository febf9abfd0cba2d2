"""Sockets and programs of other network namespaces, without moving this process.

In: the name of a namespace under /run/netns, or None for the one we are in. Out: a connected socket, a command prefix.
Must never: leave a thread in a namespace that is not its own: a socket stays where it was made, the thread comes back.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(netns: str | None) -> Iterator[None]:
    """Run the body, which must not switch threads, in a network namespace."""
    if netns is None:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(f"/run/netns/{netns}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)


def connect(netns: str | None, host: str, port: int, seconds: float) -> socket.socket:
    """Return a TCP connection made in a namespace; OSError as from `socket`."""
    with inside(netns):
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.settimeout(seconds)
    try:
        made.connect((host, port))
    except BaseException:
        made.close()
        raise
    return made


def prefix(netns: str | None) -> list[str]:
    """Return the command that runs what follows in a namespace.

    Not `ip netns exec`: that unshares the mount namespace too, and namespaces added by the child would be invisible.
    """
    return [] if netns is None else ["nsenter", f"--net=/run/netns/{netns}", "--"]


def _enter(fd: int) -> None:
    if _libc.setns(fd, _CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
