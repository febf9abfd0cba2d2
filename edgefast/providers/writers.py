"""Writers: the processes that have a file open for writing, for a message.

In: a path.
Out: process ids with names. /proc shows only processes of the same PID namespace, and files only of
the same user.
Must never: raise, or read more than MOST_LOOKS entries of open files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

__all__ = ["find_writers"]

#: Open files that are looked at, at most.
MOST_LOOKS = 100_000
_WRITES = os.O_WRONLY | os.O_RDWR


def find_writers(path: str) -> tuple[str, ...]:
    """Return each process that writes the file, as `PID (name)`."""
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    found: dict[str, None] = {}
    for _, (process, number) in zip(range(MOST_LOOKS), _open_files(), strict=False):
        try:
            other = os.stat(f"/proc/{process}/fd/{number}")
            same = (other.st_dev, other.st_ino) == (facts.st_dev, facts.st_ino)
            if same and _is_open_for_writing(process, number):
                found[f"{process} ({_name_of(process)})"] = None
        except (OSError, ValueError):
            continue  # it has ended, or is another user's
    return tuple(found)


def _open_files() -> Iterator[tuple[str, str]]:
    for process in os.listdir("/proc"):
        if process.isdigit():
            try:
                numbers = os.listdir(f"/proc/{process}/fd")
            except OSError:
                continue
            yield from ((process, one) for one in numbers)


def _is_open_for_writing(process: str, number: str) -> bool:
    with open(f"/proc/{process}/fdinfo/{number}") as file:
        flags = next((line.split()[1] for line in file if line.startswith("flags:")), "0")
    return bool(int(flags, 8) & _WRITES)


def _name_of(process: str) -> str:
    with open(f"/proc/{process}/comm", errors="replace") as file:
        return file.read(64).strip()
