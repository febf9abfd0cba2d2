"""The engine's counters, read where it writes them: a segment of csrc/stat.h in anonymous memory.

In: how many rows there may be. Out: cells and rows by name. Must never write after the segment is made.
"""

from __future__ import annotations

import mmap

from edgefast._csrc import ffi, lib
from edgefast.core.cells import BACKEND, GLOBALS, LIMIT, POLICY, ROW

GAUGES = (
    "connections_active",
    "requests_active",
    "upstream_connections_active",
    "tunnels_active",
    "stream_connections_active",
    "stream_sessions_active",
)
ANSWERED = ROW[:6]  # how a request can end
BUCKETS = tuple(name for name in ROW if name.startswith("duration_bucket_"))


class Counters:
    """`memory` is what the engine gets."""

    def __init__(self, rows: int = 64) -> None:
        size = int(lib.ef_stat_size(rows))
        self._map = mmap.mmap(-1, size)
        self.memory = memoryview(self._map)
        self._data = ffi.from_buffer(self._map)
        assert lib.ef_stat_init(self._data, size, rows) == 0
        self._stat = ffi.cast("ef_stat *", self._data)

    def __getitem__(self, name: str) -> int:
        """A global cell."""
        return int(self._stat.globals[GLOBALS.index(name)])

    def all(self) -> dict[str, int]:
        """Every global cell."""
        return {name: int(self._stat.globals[i]) for i, name in enumerate(GLOBALS)}

    def rows(self) -> dict[str, dict[str, int]]:
        """Every row by label; the overflow row's label is ""."""
        found = {}
        for number in range(self._stat.used_rows):
            row = self._stat.rows[number]
            label = ffi.string(ffi.cast("char *", row.label)).decode()
            if label.startswith(("limit\t", "policy\t", "backend\t")) or (number and not label):
                continue
            found[label] = {name: int(row.cells[i]) for i, name in enumerate(ROW)}
        return found

    def row(self, label: str) -> dict[str, int]:
        """One row."""
        return self.rows()[label]

    def limit(self, name: str) -> dict[str, int]:
        """The counts of one rate limit, without those that are 0 and without times."""
        found: dict[str, int] = {}
        for number in range(self._stat.used_rows):
            row = self._stat.rows[number]
            label = ffi.string(ffi.cast("char *", row.label)).decode()
            if label.startswith("limit\t") and label.endswith("\t" + name):
                found |= {
                    cell: int(row.cells[i])
                    for i, cell in enumerate(LIMIT, len(ROW))
                    if row.cells[i]
                }
        found.pop("store_us", None)
        return found

    def policy(self, name: str) -> dict[str, int]:
        """The counts of one unit, as in "security/ns/p\tauthorization", without those that are 0."""
        for number in range(self._stat.used_rows):
            row = self._stat.rows[number]
            if ffi.string(ffi.cast("char *", row.label)).decode() == f"policy\t{name}":
                cells = enumerate(POLICY, len(ROW) + len(LIMIT))
                return {cell: int(row.cells[i]) for i, cell in cells if row.cells[i]}
        return {}

    def tls_failures(self) -> dict[str, int]:
        """The failed handshakes with backends, by "cluster\\treason"."""
        found = {}
        for number in range(1, self._stat.used_rows):
            row = self._stat.rows[number]
            label = ffi.string(ffi.cast("char *", row.label)).decode()
            if label.startswith("backend\t"):
                at = len(ROW) + len(LIMIT) + len(POLICY) + BACKEND.index("tls_failed")
                found[label.removeprefix("backend\t")] = int(row.cells[at])
        return found

    def check(self) -> None:
        """What holds whenever nothing is going on: no gauge is up, and every request ended once."""
        assert {name: self[name] for name in GAUGES} == dict.fromkeys(GAUGES, 0)
        for label, row in self.rows().items():
            ended = sum(row[name] for name in ANSWERED)
            assert sum(row[name] for name in BUCKETS) == ended, label
