"""Counter segments in shared memory: one per worker, created by the agent, read without a request to the worker.

In: descriptors of segments that workers write (csrc/stat.h, csrc/stat.c).
Out: global cells by name, rows of routes and rows of rate limits by label, summed over workers. A
segment outlives its worker, so counters never decrease. This is the Python counterpart of the C
layout; tests/proxy/metrics/test_stats.py compiles stat.c and compares.
Must never: write into a segment of a worker.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable, Iterator, Sequence

from edgefast.core.cells import BACKEND, GLOBALS, LIMIT, POLICY, ROW

__all__ = [
    "GAUGES",
    "MAXIMA",
    "Segment",
    "add_global",
    "map_segment",
    "reset_global",
    "segment_size",
    "sum_backends",
    "sum_globals",
    "sum_limits",
    "sum_policies",
    "sum_rows",
]

_MAGIC = 0x31544645  # EF_STAT_MAGIC
_GLOBALS = 192  # EF_STAT_GLOBALS
_LABEL = 192  # EF_STAT_LABEL: 8 bytes of hash, then the text
_CELLS = 64  # EF_STAT_CELLS
_HEADER = 64
_ROWS_AT = _HEADER + 8 * _GLOBALS
_ROW_SIZE = _LABEL + 8 * _CELLS
_HOLDERS = _CELLS - 1  # EF_STAT_HOLDERS
_HEAD = struct.Struct("<IIQQ")  # magic, max_rows, used_rows, free_rows
_POLICY_LABEL = b"policy\t"  # ... and of units of policies
_BACKEND_LABEL = b"backend\t"  # ... and of failed handshakes with backends
_LIMIT_LABEL = b"limit\t"  # what labels of rate limits begin with; no route is called so

_POLICY_AT = len(ROW) + len(LIMIT)  # cells of a row before those of a policy
_BACKEND_AT = _POLICY_AT + len(POLICY)
_LAST = _BACKEND_AT + len(BACKEND)

#: Cells that say how many there are now: a new worker starts them from zero.
GAUGES = frozenset(name for name in GLOBALS if name.endswith("_active"))

#: Cells whose value for all workers is the largest of theirs.
MAXIMA = frozenset({"turn_longest_us"})


def segment_size(max_rows: int) -> int:
    """Return the bytes of a segment: `ef_stat_size`."""
    index = 2
    while index // 2 < max_rows:
        index *= 2
    return (_ROWS_AT + max_rows * _ROW_SIZE + index * 4 + 63) // 64 * 64


class Segment:
    """One worker's counters, as the agent sees them."""

    def __init__(self, max_rows: int) -> None:
        self.fd = os.memfd_create("edgefast-stat", os.MFD_CLOEXEC)
        size = segment_size(max_rows)
        os.ftruncate(self.fd, size)
        self._map = mmap.mmap(self.fd, size)
        # As ef_stat_init: the overflow row is in use; the magic comes last.
        _HEAD.pack_into(self._map, 0, 0, max_rows, 1, 0)
        struct.pack_into("<I", self._map, 0, _MAGIC)
        self._cells = memoryview(self._map).cast("Q")

    def globals(self) -> Sequence[int]:
        """Return the global cells, in the order of `GLOBALS`."""
        start = _HEADER // 8
        return self._cells[start : start + len(GLOBALS)].tolist()

    def rows(self) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yield (label, cells in the order of `ROW`, then `LIMIT`, `POLICY`, `BACKEND`); the overflow row's label is empty.

        Values may be a few events old, never torn.
        """
        yield from self._read(_LAST)

    def holders(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield (label, a sum that changes with every event, who holds the row in the worker)."""
        for label, cells in self._read(_CELLS):
            yield label, sum(cells[:_HOLDERS]), cells[_HOLDERS]

    def room(self) -> tuple[int, int]:
        """Return how many rows are in use, and how many there are."""
        _, max_rows, used, free = _HEAD.unpack_from(self._map, 0)
        return used - free, max_rows

    def _read(self, count: int) -> Iterator[tuple[bytes, Sequence[int]]]:
        _, max_rows, used, _ = _HEAD.unpack_from(self._map, 0)
        for number in range(min(used, max_rows)):
            at = _ROWS_AT + number * _ROW_SIZE
            text = self._map[at + 8 : at + _LABEL]
            label = text.partition(b"\0")[0]
            if number and not label:
                continue  # free
            first = (at + _LABEL) // 8
            cells = self._cells[first : first + count].tolist()
            if self._map[at + 8 : at + _LABEL] == text:  # else: given away in between
                yield label, cells

    def close(self) -> None:
        """Let go of the memory."""
        self._cells.release()
        self._map.close()
        os.close(self.fd)


def map_segment(fd: int) -> memoryview:
    """Map a segment writable: the worker's side."""
    return memoryview(mmap.mmap(fd, os.fstat(fd).st_size))


def add_global(segment: memoryview, name: str, count: int) -> None:
    """Add to a global cell that the engine itself does not write."""
    at = _HEADER + 8 * GLOBALS.index(name)
    (value,) = struct.unpack_from("<Q", segment, at)
    struct.pack_into("<Q", segment, at, value + count)


def reset_global(segment: memoryview, name: str) -> None:
    """Set a global cell that the engine itself does not write to zero."""
    struct.pack_into("<Q", segment, _HEADER + 8 * GLOBALS.index(name), 0)


def sum_globals(segments: Iterable[Segment]) -> dict[str, int]:
    """Add the global cells of all workers; of `MAXIMA` take the largest."""
    totals = dict.fromkeys(GLOBALS, 0)
    for segment in segments:
        for name, value in zip(GLOBALS, segment.globals(), strict=True):
            totals[name] = max(totals[name], value) if name in MAXIMA else totals[name] + value
    return totals


def sum_rows(segments: Iterable[Segment]) -> dict[bytes, list[int]]:
    """Add the rows of routes of all workers, by label."""
    found = (row for segment in segments for row in segment.rows())
    return _sum(
        (label, cells[: len(ROW)])
        for label, cells in found
        if not label.startswith((_LIMIT_LABEL, _POLICY_LABEL, _BACKEND_LABEL))
    )


def sum_limits(segments: Iterable[Segment]) -> dict[bytes, list[int]]:
    """Add the rows of rate limits of all workers, cells in the order of `LIMIT`, by "route\tlimit".

    Those that found no row of their own are under "", if there are any.
    """
    return _sum_part(segments, _LIMIT_LABEL, len(ROW), _POLICY_AT)


def sum_policies(segments: Iterable[Segment]) -> dict[bytes, list[int]]:
    """Add the rows of units of policies of all workers, cells in the order of `POLICY`, by "kind/namespace/policy\tunit".

    Those that found no row of their own are under "", if there are any.
    """
    return _sum_part(segments, _POLICY_LABEL, _POLICY_AT, _BACKEND_AT)


def sum_backends(segments: Iterable[Segment]) -> dict[bytes, list[int]]:
    """Add failed handshakes with backends of all workers, cells in the order of `BACKEND`, by "cluster\treason".

    Those that found no row of their own are under "", if there are any.
    """
    return _sum_part(segments, _BACKEND_LABEL, _BACKEND_AT, _LAST)


def _sum_part(
    segments: Iterable[Segment], prefix: bytes, first: int, end: int
) -> dict[bytes, list[int]]:
    """Add the cells `first` to `end` of rows whose label begins with `prefix`, and of the overflow row."""
    found = (row for segment in segments for row in segment.rows())
    return _sum(
        (label.removeprefix(prefix), cells[first:end])
        for label, cells in found
        if label.startswith(prefix) or (not label and any(cells[first:end]))
    )


def _sum(rows: Iterable[tuple[bytes, Sequence[int]]]) -> dict[bytes, list[int]]:
    totals: dict[bytes, list[int]] = {}
    for label, cells in rows:
        known = totals.get(label)
        if known is None:
            totals[label] = list(cells)
        else:
            totals[label] = [a + b for a, b in zip(known, cells, strict=True)]
    return totals
