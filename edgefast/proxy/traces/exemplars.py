"""Exemplars: the newest request with an exported trace for every bucket of the duration histogram.

In: records of traced requests.
Out: exemplars by label of the row that counted the request, and by bucket number. The number of
rows is bounded: exemplars without an update for longest are dropped first. Requests without a rule
have none.
Must never: read a clock, or format a page (metrics/openmetrics.py).
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping

import msgspec

from edgefast.core.cells import BUCKET_BOUNDS_MS
from edgefast.proxy.traces.span_record import SpanRecord

__all__ = ["Exemplar", "Exemplars", "Marks"]

_BOUNDS_US = tuple(round(bound * 1000) for bound in BUCKET_BOUNDS_MS)


class Exemplar(msgspec.Struct, frozen=True, gc=False):
    """One request: its server span, microseconds that it took, Unix time of its end in microseconds."""

    trace_id: bytes
    span_id: bytes
    took: int
    ended: int


#: By label of a row ("route\\trule" as csrc/stat.h cuts it; b"": the overflow row), then by number of the bucket.
Marks = Mapping[bytes, Mapping[int, Exemplar]]


class Exemplars:
    """Keeps the newest traced request of each bucket of the duration histogram.

    Any thread may call it.
    """

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows
        self._lock = threading.Lock()  # held for a few dictionary operations
        # The one last told of at the end. A row is replaced, never changed: readers have it too.
        self._rows: dict[bytes, Mapping[int, Exemplar]] = {}

    def add(self, one: SpanRecord) -> None:
        """Take in a request, unless its bucket has one that ended later."""
        if not one.route or len(one.trace_id) != 16 or len(one.span_id) != 8 or one.took < 0:
            return
        made = Exemplar(one.trace_id, one.span_id, one.took, one.start + one.took)
        bucket = bisect_left(_BOUNDS_US, one.took)  # ef_stat_bucket: a bound belongs to its bucket
        with self._lock:
            row = self._rows.pop(one.row, {})
            known = row.get(bucket)
            newer = known is None or known.ended <= made.ended
            self._rows[one.row] = {**row, bucket: made} if newer else row
            if len(self._rows) > self._most_rows:
                del self._rows[next(iter(self._rows))]

    def marks(self) -> Marks:
        """Return what there is now; it stays as it is."""
        with self._lock:
            return dict(self._rows)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._rows = {}
