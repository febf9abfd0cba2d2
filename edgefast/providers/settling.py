"""Settling: whether the writer of a file is done with it.

In: an open file and what inotify said of it. Out: the seconds to wait before the file may be read, 0 when it is complete.
A file is complete when a link to it was made after its last write (mounted ConfigMaps, git-sync), when it was renamed into place, or
when no process has it open for writing and its last write is `settle` seconds old. The kernel says whether a process has it
open: a read lease (fcntl(2), F_SETLEASE) is refused then. Where leases may not be taken (a file of another user, some file
systems) a longer time without writes stands in. Must never wait itself, or keep a lease.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["NO_EVENTS", "Events", "Settling", "Wait", "has_writer"]

#: A file without a write for this long (seconds) is complete, even if a process still has it open for writing.
WRITER_AT_MOST = 600.0
#: Where it cannot be known whether a process writes a file, its last write is this many times `settle` old.
_UNKNOWN = 10
#: Seconds until the next look at a file that a process has open for writing.
_LOOK_AGAIN = 1.0


class Events(NamedTuple):
    """What inotify said of files, by real path; times are ns since 1970."""

    busy: frozenset[str] = frozenset()  # changed, and not closed since
    closed: Mapping[str, int] = {}  # closed by a writer
    renamed: Mapping[str, int] = {}  # renamed into place


NO_EVENTS = Events()


class Wait(NamedTuple):
    """Why a file is not read now, and for how long."""

    seconds: float
    why: str


class Settling:
    """Decides for one source; `settle` is in seconds."""

    def __init__(self, settle: float) -> None:
        self._settle = settle
        # By name: modification time, and when it was first seen (monotonic). The clock of a file server may be wrong.
        self._seen: dict[str, tuple[int, float]] = {}

    def judge(
        self, name: str, fd: int, facts: os.stat_result, linked: int, events: Events
    ) -> Wait | None:
        """Return how long to wait for a file, None when it is complete."""
        if facts.st_mtime_ns <= linked:
            return None
        quiet = self._quiet(name, facts)
        if quiet >= WRITER_AT_MOST:
            return None
        real = os.path.realpath(name)
        writing = has_writer(fd)
        if writing is None and real in events.busy:
            writing = True
        if writing:
            return Wait(_LOOK_AGAIN, "a process has the file open for writing")
        if facts.st_mtime_ns <= events.renamed.get(real, 0):
            return None
        known = writing is False or facts.st_mtime_ns <= events.closed.get(real, 0)
        left = self._settle * (1 if known else _UNKNOWN) - quiet
        return Wait(left, f"the file was written {quiet:.1f} s ago") if left > 0 else None

    def forget(self, names: frozenset[str]) -> None:
        """Keep what is known of these names only."""
        self._seen = {name: one for name, one in self._seen.items() if name in names}

    def _quiet(self, name: str, facts: os.stat_result) -> float:
        """Return the seconds since the last write."""
        now = time.monotonic()
        modified, since = self._seen.get(name, (0, now))
        if modified != facts.st_mtime_ns:
            since = now
            self._seen[name] = (facts.st_mtime_ns, now)
        return max(time.time() - facts.st_mtime, now - since)


def has_writer(fd: int) -> bool | None:
    """Tell whether a process has a file open for writing; None where the kernel does not say."""
    try:
        # A writer that opens the file in between breaks the lease; the default signal for that ends the process.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
