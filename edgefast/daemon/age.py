"""Age: how long ago this process started, including the start of the interpreter and its imports.

In: nothing. Out: seconds. Linux counts the start of a process in clock ticks (10 ms) since boot (proc_pid_stat(5), field 22).
A process that replaced a shell (`exec`) started with the shell. Must never: fail where /proc cannot be read.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["process_age"]

_LOADED = time.monotonic()
_START_TIME = 22 - 3  # among the fields that follow the command, which ends with the last ")"


def process_age() -> float:
    """Return the seconds since this process began; without /proc, since this module was imported."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        began = int(fields[_START_TIME]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return time.monotonic() - _LOADED
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began)
