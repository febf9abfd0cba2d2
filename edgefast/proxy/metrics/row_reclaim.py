"""RowReclaim: selects counter rows to release when space for new ones runs short.

In: the workers' segments, read from time to time.
Out: labels that no worker holds (the rule was removed, or received no request since the last table)
and that did not change between two reads. Rows that are unchanged for longest come first, until
half of the rows are free. Every worker releases the same labels, so a series ends or restarts from
zero, but never decreases.
Must never: release a label while there is space; old values are still useful for a while.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgefast.proxy.metrics.stats import Segment

__all__ = ["RowReclaim"]


class RowReclaim:
    """Finds unused rows of counters that can be reused.

    `look` may be called in a thread, by one at a time.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self._seen: dict[bytes, tuple[int, int]] = {}  # label: its sum, the look it was new at
        self._looks = 0

    @property
    def filling(self) -> bool:
        """Whether more than half of the rows of a segment are in use: time to note what is old."""
        return any(used * 2 > most for used, most in (one.room() for one in self._segments))

    @property
    def _pressed(self) -> bool:
        return any(used * 4 > most * 3 for used, most in (one.room() for one in self._segments))

    def look(self) -> list[bytes]:
        """Return what may be forgotten now: nothing while a quarter of the rows is free."""
        if not self.filling:
            self._seen = {}
            return []
        self._looks += 1
        totals: dict[bytes, int] = {}
        held: set[bytes] = set()
        for segment in self._segments:
            for label, total, holders in segment.holders():
                totals[label] = totals.get(label, 0) + total
                if holders or not label:
                    held.add(label)
        before, self._seen = self._seen, {}
        for label, total in totals.items():
            known = before.get(label)
            unchanged = known is not None and known[0] == total
            self._seen[label] = known if known and unchanged else (total, self._looks)
        if not self._pressed:
            return []
        old = [
            (since, label)
            for label, (_, since) in self._seen.items()
            if since < self._looks and label not in held
        ]
        old.sort()
        wanted = max(used - most // 2 for used, most in (one.room() for one in self._segments))
        return [label for _, label in old[: max(wanted, 0)]]
