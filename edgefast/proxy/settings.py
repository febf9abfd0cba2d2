"""ProxySettings: the user's settings of the processes, and their named bounds.

In: filled by the command line.
Out: read by the agent and its parts.
Must never: contain routing or TLS settings; those are in the table.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgefast.httpd.address import EVERYWHERE, Address

__all__ = [
    "ACK_DEADLINE",
    "ACCEPT_BACKLOG",
    "ARENA_BYTES",
    "EXIT_GRACE",
    "EXIT_SHORTAGE",
    "PING_DEADLINE",
    "PING_EVERY",
    "STAT_ROWS",
    "STARTED_DEADLINE",
    "ProxySettings",
]

#: Address range reserved for tables (D5): sparse, only pages that hold a blob cost memory.
ARENA_BYTES = 64 * 1024**3
#: Rows of route counters per worker; what comes later is counted in the overflow row (csrc/stat.h).
STAT_ROWS = 16_384
#: Connections the kernel queues per listening socket while a worker is busy or being replaced.
ACCEPT_BACKLOG = 4096
#: Seconds for a worker to begin speaking after exec, and to swap to a table.
STARTED_DEADLINE = 20.0
ACK_DEADLINE = 30.0
#: A worker answers a ping in microseconds. One that does not is looked at (process/watchdog.py); one that is silent for so long that no
#: busy machine explains it is stuck, whatever it looks like.
PING_EVERY = 0.75
PING_DEADLINE = 30.0
#: Seconds between the order to exit and SIGKILL.
EXIT_GRACE = 3.0
#: Exit status of a worker that ran out of descriptors or memory (EX_TEMPFAIL of sysexits.h).
EXIT_SHORTAGE = 75


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one agent; durations are seconds."""

    binds: tuple[str, ...] = ("0.0.0.0", "::")
    binds_required: bool = (
        False  # given by the user: an address family that is missing is a problem
    )
    workers: int = 1
    admin: Address | None = Address("127.0.0.1", 19000)
    console: bool = True  # the page on the admin server
    # Prometheus and probes come from elsewhere; admin can end the service, so it stays on loopback.
    metrics: Address | None = Address(EVERYWHERE, 19001)
    ready: Address | None = Address(EVERYWHERE, 19003)
    log_level: str = "info"
    access_log: Path | None = None  # None: standard output
    drain_timeout: float = 60.0
    min_drain: float = 10.0
    state_dir: Path | None = None
    zone: str = ""  # this machine's; "": not said
    pod: str = ""  # what this proxy is called in its fleet; "": it is alone
    ready_when_empty: bool = False  # a table without a listener is one to be ready with
    arena_bytes: int = ARENA_BYTES
    stat_rows: int = STAT_ROWS
