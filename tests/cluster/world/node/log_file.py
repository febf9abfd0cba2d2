"""A container's log: lines with the time they were read, of bounded size.

In: what the container wrote. Out: the file; `read_lines` and `follow` give it back as the logs endpoint wants it.
Must never: grow without bound: at the limit the file becomes `<name>.1` and a new one begins.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

LIMIT = 16 << 20  # bytes of one file; two are kept
_STAMP = 28  # bytes of a time stamp and the space behind it
_FOLLOW_SECONDS = 0.05


class LogFile:
    """The log of one run of a container."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()
        self._rest = b""

    def write(self, chunk: bytes) -> None:
        """Add what was read; a line counts when it is whole."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > 65536:
            lines, self._rest = [*lines, self._rest], b""
        if not lines:
            return
        stamp = stamp_of(datetime.datetime.now(datetime.UTC)).encode()
        text = b"".join(b"%s %s\n" % (stamp, line) for line in lines)
        if self._size + len(text) > LIMIT:
            self._file.close()
            self.path.replace(f"{self.path}.1")
            self._file, self._size = self.path.open("ab", buffering=0), 0
        self._size += self._file.write(text) or 0

    def close(self) -> None:
        """Write the last line, whole or not."""
        if self._rest:
            self.write(b"\n")
        self._file.close()


def stamp_of(time: datetime.datetime) -> str:
    """Return a time as it stands in front of a line: UTC, microseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_lines(path: Path, since: str = "") -> Iterator[bytes]:
    """Yield the lines, stamps included, written since a stamp."""
    for one in (Path(f"{path}.1"), path):
        if one.exists():
            with one.open("rb") as file:
                for line in file:
                    if line[: _STAMP - 1].decode(errors="replace") >= since:
                        yield line


async def follow(path: Path, offset: int, running: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield lines from an offset on, as they are written, until the container has ended."""
    with path.open("rb") as file:
        file.seek(offset)
        rest = b""
        while True:
            ended = not running()
            rest += file.read()
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield line + b"\n"
            if ended:
                return
            await asyncio.sleep(_FOLLOW_SECONDS)


def unstamped(line: bytes) -> bytes:
    """Return a line without its stamp."""
    return line[_STAMP:]
