"""Processes with a wall clock that is wrong by a constant: proxies by libfaketime, a redis-server by clock.c.

In: seconds. Out: the words before a command that start it so. Monotonic clocks, by which deadlines go, stay.
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")


def skew_proxy(seconds: float) -> list[str]:
    """Words before `edgefast run`; its workers inherit the clock."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    settings = (f"FAKETIME={seconds:+.3f}s", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1")
    return ["env", _preload(library), *settings]


def skew_redis(seconds: float) -> list[str]:
    """Words before `redis-server`."""
    return ["env", _preload(_build()), f"STORE_CLOCK_MS={seconds * 1000:.0f}"]


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
