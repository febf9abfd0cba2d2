"""What happened in a soak: what was done, what failed, and which failures a killed worker explains.

A failure is explained when its connection was there while a worker was being killed: whether it was that worker's, only the kernel
knows. One that began afterwards has no excuse, also when it waited in the dead worker's queue.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

_SHOWN = 20  # failures that are kept as text


class Journal:
    """Written to by all loads at once."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.resumed = 0
        self.failures: list[str] = []
        self.kills: list[tuple[float, float]] = []  # began, was over
        self._lock = threading.Lock()

    def note(self, kind: str, count: int = 1, *, resumed: bool = False) -> None:
        """So many requests, or messages, went well."""
        with self._lock:
            self.done[kind] += count
            self.resumed += resumed

    def fail(self, kind: str, begun: float, error: BaseException) -> None:
        """One went wrong now, on a connection that was begun then."""
        now = time.monotonic()
        with self._lock:
            if any(begun <= over and now >= began for began, over in self.kills):
                self.excused[kind] += 1
                return
            self.failed[kind] += 1
            if len(self.failures) < _SHOWN:
                self.failures.append(f"{kind}, {now - begun:.3f} s old: {error!r}")

    def begin_kill(self) -> None:
        """A worker is about to be killed."""
        with self._lock:
            self.kills.append((time.monotonic(), float("inf")))

    def end_kill(self) -> None:
        """It is gone."""
        with self._lock:
            self.kills[-1] = (self.kills[-1][0], time.monotonic())
