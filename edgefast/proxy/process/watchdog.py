"""Watchdog: distinguishes a frozen worker from one that waits for a busy machine.

In: reads of a process about once a second, while an answer is due; the kernel's data about its main
thread (proc(5)).
Out: why it is frozen, or "" while that is uncertain. A thread that waits for a processor is
runnable and uses no time. A thread with a running loop sleeps and wakes (start_heartbeat). A
stopped thread, one that never wakes, or one that computes for seconds does neither. Time is counted
in reads and in the process's own processor time, so a delayed agent causes no false result.
Must never: report a slow worker as frozen.
"""

from __future__ import annotations

import asyncio
import os
import time
from itertools import takewhile
from pathlib import Path

import msgspec

__all__ = ["Watchdog", "Reading", "start_heartbeat", "read_process"]

#: Looks in a row at the same state without an answer, and the seconds that they span, until a worker that is stopped or
#: asleep is given up: with the time between two looks (settings.PING_EVERY) and the start of its successor, its share of
#: connections waits for less than five.
_LOOKS = 3
_SPAN = 1.2
#: Seconds of its own processor time without an answer after which a worker computes for ever.
_COMPUTING = 2.0
#: Seconds between two beats: more than one in the span of the looks.
_BEAT = 0.5

_TICKS = os.sysconf("SC_CLK_TCK")
#: States that no busy machine brings about. One that waits for a processor is R, one that waits for memory or a disk D.
_STILL = {"T": "stopped by a signal", "t": "stopped by a debugger", "S": "asleep"}


class Reading(msgspec.Struct, frozen=True):
    """What the kernel tells of a process's main thread."""

    at: float  # monotonic seconds
    state: str  # R runs or waits for a processor, S sleeps, D waits for a disk, T is stopped
    sleeps: int  # how often it fell asleep by itself
    computed: float  # seconds


def read_process(pid: int) -> Reading | None:
    """Read /proc; None for a process that is gone, or not to be seen."""
    folder = Path(f"/proc/{pid}/task/{pid}")
    try:
        fields = (folder / "stat").read_text().rpartition(") ")[2].split()
        status = (folder / "status").read_text()
        sleeps = status.rpartition("\nvoluntary_ctxt_switches:")[2].split()[0]
        computed = (int(fields[11]) + int(fields[12])) / _TICKS
        return Reading(time.monotonic(), fields[0], int(sleeps), computed)
    except (OSError, ValueError, IndexError):
        return None


class Watchdog:
    """Looks at one process."""

    def __init__(self) -> None:
        self._looks: list[Reading] = []  # since its last answer and its last sleep
        self._has_received = 0.0

    def look(self, now: Reading | None, heard: float, *, has_work: bool = False) -> str:
        """Take in a look; returns why the process is frozen, or "".

        `heard`: when its last answer came. `has_work`: it was given some that has a deadline of its own, and may compute.
        """
        if now is None or heard != self._has_received:
            self._has_received = heard
            self._looks.clear()
            return ""
        if self._looks and self._looks[-1].sleeps != now.sleeps:
            self._looks.clear()  # its loop turns, or a thread of it has the interpreter
        self._looks.append(now)
        if now.computed - self._looks[0].computed >= _COMPUTING and not has_work:
            return f"busy for {_COMPUTING:g} s without a pause"
        alike = list(
            takewhile(
                lambda one: (one.state, one.computed) == (now.state, now.computed),
                reversed(self._looks),
            )
        )
        if len(alike) < _LOOKS or now.at - alike[-1].at < _SPAN:
            return ""
        return _STILL.get(now.state, "")


def start_heartbeat(loop: asyncio.AbstractEventLoop) -> None:
    """Run a heartbeat that the kernel's statistics show while the loop runs."""
    loop.call_later(_BEAT, start_heartbeat, loop)
