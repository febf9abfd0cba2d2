"""Processes with a wrong wall clock: proxies by libfaketime, by a constant; a redis-server by clock.c, by what a test says.

In: seconds. Out: the words before a command that start it so. Monotonic clocks, by which deadlines go, stay.
"""

from __future__ import annotations

import atexit
import functools
import os
import struct
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")


def skew_proxy(seconds: int, folder: Path) -> list[str]:
    """Words before `edgefast run`; its workers inherit the clock."""
    if "EDGEFAST_SANITIZE" in os.environ:  # the sanitizer's allocator reads the clock as well
        clock = MovableClock(folder)
        clock.move(seconds)
        return clock.prefix
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    settings = (f"FAKETIME={seconds:+}s", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1")
    return ["env", _preload(library), *settings]


class MovableClock:
    """The clock of a process, which can be moved while it runs."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._moved = 0.0
        self.move(0)

    @property
    def prefix(self) -> list[str]:
        """Words before its command."""
        return ["env", _preload(_build()), f"STORE_CLOCK={self._file}"]

    def move(self, seconds: float) -> None:
        """Move it forward."""
        self._moved += seconds
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", round(self._moved * 1000)))


def _preload(library: Path) -> str:
    return f"LD_PRELOAD={os.environ.get('LD_PRELOAD', '')} {library}"


@functools.cache
def _build() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="edgefast-store-clock-")
    atexit.register(folder.cleanup)
    library = Path(folder.name) / "clock.so"
    command = ["gcc", "-std=c11", "-O1", "-shared", "-fPIC", "-o", str(library), str(_SOURCE)]
    subprocess.run(command, check=True, timeout=60)
    return library
