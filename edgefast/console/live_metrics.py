"""Live metrics: requests per second, error ratio and latencies of the last seconds, from monotonic counters.

In: readings of counters, with the time of each.
Out: `Rate`s by label, of any set of labels. A reading uses memory only for changes since the
previous one.
Must never: read a clock, or compute a rate from one reading.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from heapq import nlargest

import msgspec

WINDOW = 10.0  # seconds that rates are of
_STALE = 30.0  # seconds between readings after which the ones before say nothing about now

#: Cells of a row: all requests, failed ones (5xx, no answer), 4xx, microseconds, then the latency buckets.
_REQUESTS, _FAILED, _REFUSED, _TIME, _BUCKETS = 0, 1, 2, 3, 4

Row = array  # of "Q"


def make_row(
    classes: Sequence[int], aborted: int, microseconds: int, buckets: Sequence[int]
) -> Row[int]:
    """Return a row; `classes` are the answers 1xx to 5xx."""
    cells = (sum(classes) + aborted, classes[4] + aborted, classes[3], microseconds, *buckets)
    return array("Q", cells)


class Counters(msgspec.Struct, frozen=True):
    """One reading."""

    rows: Mapping[bytes, Row[int]] = {}  # by "route\trule"; b"" is of those without a row
    limits: Mapping[bytes, Sequence[int]] = {}  # by "route\tlimit": ok, over, shadow_over, error
    totals: Mapping[str, int] = {}  # of the process
    policies: Mapping[
        bytes, Sequence[int]
    ] = {}  # by "policy\tunit": let in, refused, failed, known


class Rate(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last seconds; latencies are milliseconds, None without a request."""

    requests: float = 0.0  # per second
    errors: float = 0.0  # share of 5xx and requests without an answer, 0 to 1
    refused: float = 0.0  # share of 4xx
    p50: float | None = None
    p99: float | None = None


class _Reading(msgspec.Struct, frozen=True):
    at: float
    counters: Counters


class Meter:
    """Takes in readings; `window` is what they come to, and never changes."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds`: upper bounds of the latency buckets; one more bucket is open."""
        self._bounds = tuple(bounds)
        self.window = Window(self._bounds, (), {})

    @property
    def at(self) -> float | None:
        """When the newest reading was taken."""
        readings = self.window.readings
        return readings[-1].at if readings else None

    def take(self, now: float, counters: Counters) -> None:
        """Take in a reading."""
        kept = self.window.readings
        if kept and now - kept[-1].at > _STALE:
            kept = ()
        kept = (*(one for one in kept[:-1] if now - one.at <= WINDOW), *kept[-1:])
        before = kept[-1].counters.rows if kept else {}
        rows = {
            label: old if (old := before.get(label)) == row else row
            for label, row in counters.rows.items()
        }
        kept = (*kept, _Reading(now, msgspec.structs.replace(counters, rows=rows)))
        first = kept[0].counters.rows
        active = {
            label: grown
            for label, row in rows.items()
            if row is not (old := first.get(label)) and any(grown := _subtract(row, old))
        }
        self.window = Window(self._bounds, kept, active)


class Window:
    """Rates of the last seconds."""

    def __init__(
        self,
        bounds: tuple[float, ...],
        readings: tuple[_Reading, ...],
        active: Mapping[bytes, Row[int]],
    ) -> None:
        """`active`: what has grown within the window."""
        self.readings = readings
        self._bounds = bounds
        self._active = active
        #: How long it is; 0: no rate is known yet.
        self.seconds = readings[-1].at - readings[0].at if readings else 0.0

    def rate(self, labels: Collection[bytes]) -> Rate | None:
        """Return the rate of some rows together; None when none is known yet."""
        if not self.seconds:
            return None
        active = self._active
        fewer, others = (active, labels) if len(active) < len(labels) else (labels, active)
        found = [active[label] for label in fewer if label in others]
        return self._rate(_add(found)) if found else Rate()

    def busiest(self, most: int) -> list[bytes]:
        """Return the labels with the most requests, the busiest first."""
        labels = (one for one in self._active if one)
        return nlargest(most, labels, key=lambda label: self._active[label][_REQUESTS])

    def rate_all(self) -> Rate | None:
        """Return the rate of everything that was counted."""
        if not self.seconds:
            return None
        return self._rate(_add(list(self._active.values()))) if self._active else Rate()

    def since_start(self, labels: Collection[bytes]) -> dict[str, float | None]:
        """Return sums since the start: requests, errors, refused, mean, p50, p99."""
        rows = self.readings[-1].counters.rows if self.readings else {}
        found = [rows[label] for label in labels if label in rows]
        if not found:
            return {"requests": 0, "errors": 0, "refused": 0}
        total = _add(found)
        buckets = total[_BUCKETS:]
        count = sum(buckets)
        return {
            "requests": total[_REQUESTS],
            "errors": total[_FAILED],
            "refused": total[_REFUSED],
            "mean": total[_TIME] / count / 1000 if count else None,
            "p50": quantile(buckets, self._bounds, 0.5),
            "p99": quantile(buckets, self._bounds, 0.99),
        }

    def limit_rates(self, label: bytes) -> tuple[float, ...] | None:
        """Return how often a limit let pass, refused, would have refused and failed, per second."""
        return self._grow(*(one.counters.limits.get(label) for one in self._ends()))

    def policy_rates(self, label: bytes) -> tuple[float, ...] | None:
        """Return how often a unit of a policy let in, refused, failed and was not asked again, per second."""
        return self._grow(*(one.counters.policies.get(label) for one in self._ends()))

    def _ends(self) -> tuple[_Reading, ...]:
        return (self.readings[0], self.readings[-1]) if self.seconds else ()

    def _grow(self, *ends: Sequence[int] | None) -> tuple[float, ...] | None:
        if not ends:
            return None
        old, new = ends[0] or (), ends[1]
        if new is None:
            return (0.0, 0.0, 0.0, 0.0)
        padded = [*old, *(0 for _ in range(len(new) - len(old)))]
        return tuple(
            max(0, a - b) / self.seconds for a, b in zip(new[:4], padded[:4], strict=False)
        )

    def total(self, name: str) -> int:
        """Return a counter of the process as it is."""
        return self.readings[-1].counters.totals.get(name, 0) if self.readings else 0

    def growth(self, *names: str) -> float | None:
        """Return how fast some counters of the process grow together, per second."""
        if not self.seconds:
            return None
        new, old = self.readings[-1].counters.totals, self.readings[0].counters.totals
        grown = sum(max(0, new.get(name, 0) - old.get(name, 0)) for name in names)
        return grown / self.seconds

    def _rate(self, row: Sequence[int]) -> Rate:
        requests = row[_REQUESTS]
        buckets = row[_BUCKETS:]
        return Rate(
            requests=round(requests / self.seconds, 3),
            errors=round(row[_FAILED] / requests, 5) if requests else 0.0,
            refused=round(row[_REFUSED] / requests, 5) if requests else 0.0,
            p50=quantile(buckets, self._bounds, 0.5),
            p99=quantile(buckets, self._bounds, 0.99),
        )


def _subtract(new: Row[int], old: Row[int] | None) -> Row[int]:
    """Return what a row has grown by; one that was given away in between has begun at zero."""
    if old is None or new[_REQUESTS] < old[_REQUESTS]:
        return new
    return array("Q", (max(0, a - b) for a, b in zip(new, old, strict=True)))


def _add(rows: Sequence[Row[int]]) -> Sequence[int]:
    return rows[0] if len(rows) == 1 else [sum(cells) for cells in zip(*rows, strict=True)]


def quantile(buckets: Sequence[int], bounds: Sequence[float], share: float) -> float | None:
    """Return a quantile in milliseconds, linear within its bucket; the last bound stands for all above it."""
    wanted = sum(buckets) * share
    if not wanted:
        return None
    low, seen = 0.0, 0
    for count, high in zip(buckets, bounds, strict=False):
        if count and seen + count >= wanted:
            return round(low + (high - low) * (wanted - seen) / count, 4)
        seen += count
        low = high
    return bounds[-1]
