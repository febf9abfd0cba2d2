"""The rate-limit algorithm over a dictionary: what every counter store must answer, to the number.

In: take(key, n, limit, unit, sliding, now_ms). Out: (admitted, remaining, reset_ms, window_start_s). Slow and plain on
purpose: the time at which a sliding window lets one more pass is searched for, not computed. A key is used with one unit
and one kind of window. It forgets nothing: a store that drops ended windows differs only for times that run backwards.
"""

from __future__ import annotations

UNITS = (1, 60, 3600, 86400, 604800, 2592000, 31536000)


class ReferenceStore:
    """Counters by key: (window id, admitted in it, admitted in the window before it)."""

    def __init__(self, *, steps: bool = False) -> None:
        """`steps`: an older time is a clock that was set back; else it is one that was read earlier."""
        self.counters: dict[bytes, tuple[int, int, int]] = {}
        self.steps = steps

    def take(
        self, key: bytes, n: int, limit: int, unit: int, sliding: bool, now_ms: int
    ) -> tuple[int, int, int, int]:
        """Admit up to n of n requests. What admits nothing changes nothing (n = 0 only reads).

        A time that was read before the stored window began is taken to be its start. A clock that was set back is believed:
        of the next window what was admitted counts in this one, a later one is nobody's.
        """
        stored, current, previous = self.counters.get(key, (0, 0, 0))
        unit_ms = unit * 1000
        ahead = stored - now_ms // unit_ms
        if self.steps and ahead > 0:
            stored, current, previous = (
                (stored - 1, min(current + previous, limit), 0) if ahead == 1 else (0, 0, 0)
            )
            if ahead == 1:
                self.counters[key] = stored, current, previous
        now_ms = max(now_ms, stored * unit_ms)
        window = now_ms // unit_ms
        if window > stored:
            previous = current if window == stored + 1 else 0
            current = 0
        elapsed = now_ms - window * unit_ms
        weight = weigh(previous, elapsed, unit_ms) if sliding else 0
        admitted = min(max(limit - weight - current, 0), n)
        current += admitted
        remaining = max(limit - weight - current, 0)
        if admitted:
            self.counters[key] = (window, current, previous)
        reset = unit_ms - elapsed
        if sliding and remaining == 0 and limit > 0:
            reset = wait(current, previous, elapsed, limit, unit_ms)
        return admitted, remaining, reset, window * unit


def weigh(previous: int, elapsed: int, unit_ms: int) -> int:
    """The part of the previous window's count that still counts."""
    return previous * (unit_ms - elapsed) // unit_ms


def wait(current: int, previous: int, elapsed: int, limit: int, unit_ms: int) -> int:
    """The least number of milliseconds (>= 1) after which one request would pass if none came in between."""

    def passes(later: int) -> bool:
        at = elapsed + later
        if at < unit_ms:
            return weigh(previous, at, unit_ms) + current < limit
        if at < 2 * unit_ms:
            return weigh(current, at - unit_ms, unit_ms) < limit
        return True

    low, high = 1, 2 * unit_ms - elapsed  # usage only falls with time
    while low < high:
        middle = (low + high) // 2
        if passes(middle):
            high = middle
        else:
            low = middle + 1
    return low
