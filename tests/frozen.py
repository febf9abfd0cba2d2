"""Frozen processes: SIGSTOP is on its way when kill(2) returns; a thread on another processor may still answer.

In: a pid that was told to stop. Out: it has, all its threads. Must never wait without a deadline.
"""

from __future__ import annotations

import time
from pathlib import Path

_DEADLINE = 30.0  # seconds


def wait_frozen(pid: int) -> None:
    """Return when no thread of the process runs; TimeoutError."""
    end = time.monotonic() + _DEADLINE
    while any(_state(task) not in "Tt" for task in Path(f"/proc/{pid}/task").iterdir()):
        if time.monotonic() > end:
            raise TimeoutError(f"process {pid} does not stop")
        time.sleep(0.001)


def _state(task: Path) -> str:
    try:
        return (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return "T"
