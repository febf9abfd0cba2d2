"""The Python twin of csrc/stat.h against the C code itself: a writer in C, a reader in Python."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgefast.core.cells import GLOBALS, ROW
from edgefast.proxy.metrics.stats import (
    Segment,
    add_global,
    map_segment,
    segment_size,
    sum_globals,
    sum_rows,
)

CSRC = Path(__file__).parents[3] / "csrc"


@pytest.fixture(scope="module")
def stat(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """csrc/stat.c as a library."""
    library = tmp_path_factory.mktemp("stat") / "stat.so"
    sources = [str(CSRC / name) for name in ("stat.c", "map.c")]
    subprocess.run(
        ["gcc", "-std=c11", "-shared", "-fPIC", "-O1", *sources, "-o", str(library)],
        check=True,
        timeout=60,
    )
    loaded = ctypes.CDLL(str(library))
    loaded.ef_stat_size.restype = ctypes.c_size_t
    for function in (loaded.ef_stat_hold, loaded.ef_stat_forget):
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    loaded.ef_stat_hold.restype = ctypes.c_void_p
    loaded.ef_stat_release.argtypes = [ctypes.c_void_p]
    loaded.ef_stat_adopt.argtypes = [ctypes.c_void_p]
    loaded.ef_stat_check.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return loaded


@pytest.fixture
def segment() -> Iterator[Segment]:
    made = Segment(16)
    yield made
    made.close()


class Writer:
    """The worker's side: the same memory, written through the C functions."""

    def __init__(self, stat: ctypes.CDLL, segment: Segment) -> None:
        self.stat = stat
        self.view = map_segment(segment.fd)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.view))

    def hold(self, label: bytes) -> int:
        return int(self.stat.ef_stat_hold(self.address, label, len(label)))

    def forget(self, label: bytes) -> bool:
        return bool(self.stat.ef_stat_forget(self.address, label, len(label)))

    def add(self, label: bytes, cell: str, count: int) -> None:
        row = self.hold(label)
        self.stat.ef_stat_release(row)
        at = row - self.address + 192 + 8 * ROW.index(cell)
        (value,) = struct.unpack_from("<Q", self.view, at)
        struct.pack_into("<Q", self.view, at, value + count)


@pytest.mark.parametrize("rows", [1, 2, 3, 16, 1000, 16_384, 100_000])
def test_sizes_agree(stat: ctypes.CDLL, rows: int) -> None:
    assert stat.ef_stat_size(rows) == segment_size(rows)


def test_c_takes_a_segment_made_here(stat: ctypes.CDLL, segment: Segment) -> None:
    writer = Writer(stat, segment)
    assert stat.ef_stat_check(writer.address, len(writer.view)) == 0
    assert stat.ef_stat_check(writer.address, 64) == -1


def test_rows_written_by_c_are_read_here(stat: ctypes.CDLL, segment: Segment) -> None:
    writer = Writer(stat, segment)
    writer.add(b"default/web\t0", "requests_2xx", 3)
    writer.add(b"default/web\t1", "requests_5xx", 1)
    writer.add(b"default/web\t0", "requests_2xx", 4)
    rows = sum_rows([segment])
    assert rows[b"default/web\t0"][ROW.index("requests_2xx")] == 7
    assert rows[b"default/web\t1"][ROW.index("requests_5xx")] == 1
    assert not any(rows[b""])


def test_what_does_not_fit_is_in_the_overflow_row(stat: ctypes.CDLL, segment: Segment) -> None:
    writer = Writer(stat, segment)
    for number in range(100):
        writer.add(b"default/route-%d\t0" % number, "requests_2xx", 1)
    rows = sum_rows([segment])
    assert len(rows) == 16
    assert rows[b""][ROW.index("requests_2xx")] == 85
    assert sum(cells[ROW.index("requests_2xx")] for cells in rows.values()) == 100


def test_rows_that_were_given_away_are_not_read(stat: ctypes.CDLL, segment: Segment) -> None:
    writer = Writer(stat, segment)
    writer.add(b"a\t0", "requests_2xx", 1)
    writer.add(b"b\t0", "requests_2xx", 2)
    assert segment.room() == (3, 16)
    assert writer.forget(b"a\t0")
    assert segment.room() == (2, 16)
    assert set(sum_rows([segment])) == {b"", b"b\t0"}
    writer.add(b"c\t0", "requests_2xx", 4)
    assert segment.room() == (3, 16)
    assert sum_rows([segment])[b"c\t0"][ROW.index("requests_2xx")] == 4


def test_who_holds_a_row_is_seen(stat: ctypes.CDLL, segment: Segment) -> None:
    writer = Writer(stat, segment)
    writer.add(b"a\t0", "requests_2xx", 3)
    writer.hold(b"b\t0")
    assert list(segment.holders())[1:] == [(b"a\t0", 3, 0), (b"b\t0", 0, 1)]
    assert not writer.forget(b"b\t0")
    stat.ef_stat_adopt(writer.address)  # a successor: nobody holds anything
    assert list(segment.holders())[1:] == [(b"a\t0", 3, 0), (b"b\t0", 0, 0)]


def test_a_successor_counts_on_in_the_same_segment(stat: ctypes.CDLL, segment: Segment) -> None:
    Writer(stat, segment).add(b"a/b\t0", "requests_2xx", 2)
    Writer(stat, segment).add(b"a/b\t0", "requests_2xx", 3)
    assert sum_rows([segment])[b"a/b\t0"][ROW.index("requests_2xx")] == 5


def test_workers_are_added_up(stat: ctypes.CDLL) -> None:
    segments = [Segment(4), Segment(4)]
    for number, segment in enumerate(segments, 1):
        Writer(stat, segment).add(b"a/b\t0", "bytes_sent", number)
        add_global(map_segment(segment.fd), "access_log_dropped", number * 10)
        add_global(map_segment(segment.fd), "turn_longest_us", 7 * number)
    assert sum_rows(segments)[b"a/b\t0"][ROW.index("bytes_sent")] == 3
    totals = sum_globals(segments)
    assert totals["access_log_dropped"] == 30
    assert totals["turn_longest_us"] == 14  # of the slower one
    assert sum(totals.values()) == 30 + 14
    assert list(totals) == list(GLOBALS)
    for segment in segments:
        segment.close()
