"""File limit: raises the file descriptor limit to the value that the connection limits of the table need.

In: the listeners of a table.
Out: the limit of this process, inherited by workers through exec, and a warning in the log when the
connection limits exceed it.
Must never: lower a limit.
"""

from __future__ import annotations

import functools
import logging
import resource
from collections.abc import Iterable
from pathlib import Path

from edgefast import ir

__all__ = ["check_descriptors", "explain_start", "needed_descriptors", "raise_limit"]

log = logging.getLogger(__name__)

#: A downstream connection and the upstream connection that serves it. A session of UDP has the upstream one alone.
_PER_CONNECTION = 2
#: Log, control, arena, event loop, sockets per listener, idle upstream connections.
_OTHERS = 1024
_CEILING = Path("/proc/sys/fs/nr_open")
#: What the agent needs to begin, besides what is open: its memory, its event loop, files that it reads, its reserve; then for
#: each worker (channel, process, counters, sockets) and for each small server.
_BEGIN = 24
_BEGIN_WORKER = 5
_BEGIN_SERVER = 3
_OPEN = Path("/proc/self/fd")


def raise_limit() -> int:
    """Raise the soft limit to the hard one, the hard one to the kernel's ceiling when allowed.

    Returns the limit now in force.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = _ceiling()
    highest = ceiling if hard == resource.RLIM_INFINITY else max(hard, ceiling)
    for want in (highest, ceiling if hard == resource.RLIM_INFINITY else hard):
        if want <= soft:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (want, want))
            break
        except (OSError, ValueError):
            continue  # raising the hard limit needs CAP_SYS_RESOURCE
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def needed_descriptors(listeners: Iterable[ir.Listener]) -> int:
    """Return what one worker needs when every port and listener is at its cap."""
    return sum(count for _, count in _demands(listeners)) + _OTHERS


def _demands(listeners: Iterable[ir.Listener]) -> list[tuple[str, int]]:
    """Return which settings ask for descriptors, and for how many: of HTTP a port's caps count once, at layer 4 each listener's."""
    ports: dict[tuple[int, tuple[str, ...]], int] = {}
    connections = sessions = 0
    for one in listeners:
        if one.protocol in ("HTTP", "HTTPS"):
            port = one.bind_port, one.addresses
            ports[port] = max(ports.get(port, 0), one.http.max_connections)
        elif one.protocol == "UDP":
            sessions += one.stream.max_sessions
        else:
            connections += one.stream.max_connections
    demands = (
        ("spec.http.maxConnections", sum(ports.values()) * _PER_CONNECTION),
        ("spec.stream.maxConnections", connections * _PER_CONNECTION),
        ("spec.stream.maxSessions", sessions),
    )
    return [(name, count) for name, count in demands if count]


@functools.lru_cache(maxsize=16)
def _warn(demands: tuple[tuple[str, int], ...], need: int, limit: int) -> None:
    """Log the warning once for each set of numbers: tables of the same listeners have the same ones."""
    log.warning(
        "file descriptor limit %d is below %d, which a worker needs at full load (%s, others %d): "
        "raise ulimit -Hn or LimitNOFILE= in the unit, or lower %s",
        limit,
        need,
        ", ".join(f"{count} for {name} of all ports" for name, count in demands),
        _OTHERS,
        " or ".join(name for name, _ in demands),
    )


def check_descriptors(listeners: Iterable[ir.Listener], limit: int) -> bool:
    """Return whether the caps are within the limit; a warning is logged when they are not."""
    demands = _demands(listeners)
    need = sum(count for _, count in demands) + _OTHERS
    if need > limit:
        _warn(tuple(demands), need, limit)
    return need <= limit


def explain_start(limit: int, workers: int, servers: int) -> str:
    """Say why an agent cannot begin with so few descriptors; "" when it can."""
    need = _count_open() + _BEGIN + workers * _BEGIN_WORKER + servers * _BEGIN_SERVER
    if need <= limit:
        return ""
    return f"file descriptor limit {limit} is below the {need} that a start needs (workers: {workers}, admin servers: {servers}); raise ulimit -Hn or LimitNOFILE= in the unit"


def _count_open() -> int:
    try:
        return len(list(_OPEN.iterdir()))
    except OSError:  # where a limit is at its end, or there is no /proc
        return 0


def _ceiling() -> int:
    try:
        return int(_CEILING.read_text())
    except (OSError, ValueError):
        return 1024 * 1024
