"""Log file: the destination of access log lines: standard output, or a file that is opened by its path.

In: a path, or None.
Out: a descriptor for the next lines. After a rename or removal (logrotate), the next lines go to a
new file at the same path. No signal is necessary and no line is lost. Every process appends by
itself; the kernel separates their writes.
Must never: open a path that is not a regular file, or stop writing while a destination is
available.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

__all__ = ["LogFile", "LogTarget", "Standard", "check_log_file"]

log = logging.getLogger(__name__)

_OPEN = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
#: Lines tell who has asked for what: they are for the owner and the group.
_MODE = 0o640


class LogTarget:
    """Gives a descriptor."""

    def descriptor(self) -> int:
        """Return where to write now; raises OSError where there is nothing to write to."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what was opened."""


class Standard(LogTarget):
    """A descriptor that is there, and stays."""

    def __init__(self, fd: int = 1) -> None:
        self._fd = fd

    def descriptor(self) -> int:
        """Return it."""
        return self._fd


class LogFile(LogTarget):
    """A file by its name. One thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._is: tuple[int, int] | None = None  # device and inode of what is open
        self._failed = False

    def descriptor(self) -> int:
        """Look whether the name still stands for what is open: a system call per batch of lines."""
        try:
            found = os.stat(self._path)
            now = found.st_dev, found.st_ino
        except OSError:
            now = None
        if self._fd >= 0 and now == self._is:
            return self._fd
        try:
            fd, self._is = _open(self._path)
        except OSError as error:
            if self._fd < 0:
                raise
            if not self._failed:
                message = error.strerror or error
                log.warning(
                    "access log: %s cannot be reopened: %s; lines are written to the old file",
                    self._path,
                    message,
                )
            self._failed = True
            return self._fd
        self._failed = False
        self.close()
        self._fd = fd
        return fd

    def close(self) -> None:
        """Close what is open."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def check_log_file(path: Path) -> None:
    """Make the file if it is not there; raises OSError, whose text says what is wrong."""
    fd, _ = _open(path)
    os.close(fd)


def _open(path: Path) -> tuple[int, tuple[int, int]]:
    fd = os.open(path, _OPEN, _MODE)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise OSError(f"{path} is not a regular file")
    return fd, (found.st_dev, found.st_ino)
