"""Breaker: circuit breaker of a counter server: when it is asked, and when it is retried.

In: results of batches and connection attempts, and the time (seconds of any monotonic clock).
Out: whether the breaker is open (no checks are sent; the failure policy decides at once), and when
the next attempt may begin. It opens after three failures in a row. Five attempts per second
continue. The first success closes it, so limits work again within a second. A failure is anything
that prevents counting. Late answers at one time are one failure: a store that pauses for a moment
stays in use.
Must never: read a clock.
"""

from __future__ import annotations

from math import inf

__all__ = ["Breaker"]


class Breaker:
    """Counts failures in a row."""

    THRESHOLD = 3
    RETRY = 0.05  # seconds from the begin of one attempt to the begin of the next while closed
    PROBE = 0.2  # while open

    __slots__ = ("_begun", "_late", "failures", "open")

    def __init__(self) -> None:
        self.open = False
        self.failures = 0
        self._begun = -inf
        self._late = -inf

    def on_failure(self) -> bool:
        """Count a refusal, or an attempt that failed; True if this opened it."""
        self.failures += 1
        if self.open or self.failures < self.THRESHOLD:
            return False
        self.open = True
        return True

    def on_late(self, now: float, timeout: float) -> bool:
        """Count answers that did not come within `timeout`; those that are late in the same one are one failure."""
        if now < self._late + timeout:
            return False
        self._late = now
        self.on_failure()
        return True

    def on_success(self) -> bool:
        """Forget the failures; True if this closed it."""
        was_open, self.open, self.failures = self.open, False, 0
        return was_open

    def on_attempt(self, now: float) -> None:
        """An attempt begins."""
        self._begun = now

    def wait(self, now: float) -> float:
        """Seconds until the next attempt may begin; a connection that lived longer than RETRY is replaced at once."""
        return max(0.0, self._begun + (self.PROBE if self.open else self.RETRY) - now)
