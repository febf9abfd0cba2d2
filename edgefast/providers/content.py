"""Content: the bytes of one file, with a stamp that changes when the content changes.

In: a path, and a check for files that are being written.
Out: bytes and stamp; `FileBeingWritten` for a file that is being written, `NotRegular` for a source
that can be read only once, OSError.
Must never: wait for a writer, or return more than MAX_FILE_BYTES + 1.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import NamedTuple

from edgefast.api.limits import MAX_FILE_BYTES
from edgefast.providers.write_completion import Wait

__all__ = [
    "Judge",
    "NotRegular",
    "Stamp",
    "FileBeingWritten",
    "read_file",
    "read_start",
    "stamp_of",
]

#: A file changed this recently (seconds) may change again within the clock tick of its time stamp.
_FRESH = 0.1

#: Returns why a file is not complete; None: it is complete.
Judge = Callable[[int, os.stat_result], Wait | None]


class Stamp(NamedTuple):
    """Equal stamps of two reads mean equal content."""

    modified: int
    changed: int
    size: int
    inode: int
    device: int


class NotRegular(Exception):
    """Not a regular file: read once, never watched."""


class FileBeingWritten(Exception):
    """A file that is being written."""

    def __init__(self, wait: Wait) -> None:
        super().__init__(wait.why)
        self.wait = wait


def stamp_of(facts: os.stat_result) -> Stamp:
    """Return the stamp of a file."""
    return Stamp(facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino, facts.st_dev)


def read_file(path: str, judge: Judge | None, *, once: bool) -> tuple[bytes, Stamp | None, bool]:
    """Return content, stamp (None: read it again at the next look) and whether it is a regular file.

    With `once`, raises NotRegular for anything but a regular file.
    """
    # A folder may contain a FIFO: never wait for its writer.
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        facts = os.fstat(file.fileno())
        regular = stat.S_ISREG(facts.st_mode)
        if not regular:
            if once:
                raise NotRegular
            os.set_blocking(file.fileno(), True)
        elif judge is not None and (wait := judge(file.fileno(), facts)) is not None:
            raise FileBeingWritten(wait)
        data = file.read(MAX_FILE_BYTES + 1)
        if regular and judge is not None and stamp_of(os.fstat(file.fileno())) != stamp_of(facts):
            raise FileBeingWritten(Wait(_FRESH, "the file was written while it was read"))
    fresh = time.time() - max(facts.st_mtime, facts.st_ctime) < _FRESH
    return data, None if fresh and regular else stamp_of(facts), regular


def read_start(path: str, most: int) -> bytes:
    """Return the first bytes of a regular file that is perhaps being written; nothing where it cannot be read."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""
