"""Write completion: detects whether a file is completely written.

In: an open file and its inotify events.
Out: the seconds to wait before the file may be read; 0 when it is complete. A file is complete when
a link to it was made after its last write (mounted ConfigMaps, git-sync), when it was renamed to
its path, or when no process has it open for writing and its last write is `settle` seconds old. The
kernel refuses a read lease (fcntl(2), F_SETLEASE) while a process has the file open for writing.
Leases are not permitted for files of another user and on some file systems, and do not cover other
machines (FUSE, network file systems). In these cases a longer time without writes is required.
Must never: wait itself, or keep a lease.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import time
from collections.abc import Mapping, Set
from typing import NamedTuple

__all__ = ["NO_EVENTS", "Events", "WriteCompletion", "Wait", "has_writer"]

#: A file without a write for this long (seconds) is complete, even if a process still has it open for writing.
WRITER_AT_MOST = 600.0
#: If the kernel cannot tell whether a process writes a file, its last write must be this many times `settle` old.
_UNKNOWN = 10
#: Seconds until the next look at a file that a process has open for writing.
_LOOK_AGAIN = 1.0
#: f_type of file systems (statfs(2)) where another machine, or the server behind FUSE, may write a file that no process has open here.
_REMOTE = frozenset((
    0x65735546,  # FUSE, virtiofs
    0x6969,  # NFS
    0x517B, 0xFF534D42, 0xFE534D42,  # SMB, CIFS, SMB2
    0x01021997,  # 9P
    0x00C36400,  # Ceph
    0x5346414F, 0x6B414653,  # AFS
    0x73757245,  # Coda
    0x01161970,  # GFS2
    0x7461636F,  # OCFS2
    0x0BD00BD0,  # Lustre
    0x47504653,  # GPFS
    0x19830326,  # BeeGFS
    0x786F4256,  # VirtualBox
))  # fmt: skip
#: Bytes for a struct statfs: more than any system has.
_STATFS = 512
_libc = ctypes.CDLL(None, use_errno=True)


class Events(NamedTuple):
    """Events of inotify, by real path; times are ns since 1970."""

    busy: frozenset[str] = frozenset()  # changed, and not closed since
    closed: Mapping[str, int] = {}  # closed by a writer
    renamed: Mapping[str, int] = {}  # renamed into place


NO_EVENTS = Events()


class Wait(NamedTuple):
    """Why a file is not read now, and for how long."""

    seconds: float
    why: str


class WriteCompletion:
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
        limit = self._settle * (1 if known else _UNKNOWN)
        left = limit - quiet
        return Wait(left, f"its last write is less than {limit:g} s ago") if left > 0 else None

    def forget(self, names: Set[str]) -> None:
        """Forget all files but these."""
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
    """Tell whether a process has a file open for writing; None if the kernel cannot tell."""
    try:
        # A writer that opens the file in between breaks the lease; the default signal for that ends the process.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return None if _file_system(fd) in _REMOTE else False


def _file_system(fd: int) -> int | None:
    """Return the f_type of the file system of a file, None if statfs fails."""
    facts = ctypes.create_string_buffer(_STATFS)
    if _libc.fstatfs(fd, facts) != 0:
        return None
    return ctypes.c_long.from_buffer(facts).value & 0xFFFFFFFF  # the first field
