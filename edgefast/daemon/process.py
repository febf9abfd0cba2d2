"""Garbage collector settings of a process that holds a configuration of millions of long-lived objects.

In: nothing.
Out: a collector that runs rarely and only for young objects; `keep_all` excludes all present
objects from later runs. Python's default thresholds would scan the whole heap five times during a
start with 100,000 routes, half of its time.
Must never: disable the collector, because exceptions and tasks create cycles all the time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import sys
import time
from pathlib import Path

__all__ = [
    "WORKER_INTERVAL",
    "forbid_cores",
    "keep_all",
    "look_seldom",
    "process_age",
    "share_interpreter",
]


#: Objects that are made until the young ones are looked at; how often these, until those that have survived a look are; and so on.
#: A thousand times more than Python's until it is the whole heap.
_THRESHOLDS = (20_000, 20, 100)


def look_seldom() -> None:
    """For a process that reads files or a cluster."""
    gc.set_threshold(*_THRESHOLDS)


def keep_all() -> None:
    """What has come so far is here to stay; garbage is collected first, since it would stay, too."""
    gc.collect()
    gc.freeze()


# --- age ---


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


# --- no core dumps of a process that has private keys in its memory ---


def forbid_cores() -> None:
    """Have no core dump written, nor given to a program, when this process dies."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0 if hard == 0 else 1, hard))


# --- the interpreter is one for all threads of a process ---


#: Seconds that a thread computes before it lets go, once another one waits. A change of threads costs some ten microseconds.
_INTERVAL = 0.0005
#: The same in a worker, whose loop lets go in each turn: clients wait for it while somebody's passwords are tried ($apr1$ is 0.4 ms of Python).
WORKER_INTERVAL = 0.00005


def share_interpreter(interval: float = _INTERVAL) -> None:
    """Have threads that compute let the loop go on soon."""
    sys.setswitchinterval(interval)
