"""Exemplars: the newest of each bucket, of no more rows than there may be, and of nothing that is no request of a rule."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edgefast.proxy.traces.exemplars import Exemplar, Exemplars
from proxy.spans import SPAN

pytestmark = pytest.mark.pure

ROW = b"ns/web\t2"


def of(**changes: Any) -> Any:
    return msgspec.structs.replace(SPAN, **changes)


def test_the_newest_of_each_bucket_stays() -> None:
    kept = Exemplars(8)
    first, later, slower = (
        of(trace_id=b"\x0a" * 16, start=1_000_000, took=300),
        of(trace_id=b"\x0b" * 16, start=2_000_000, took=400),
        of(trace_id=b"\x0c" * 16, start=1_500_000, took=600),
    )
    for one in (first, later, slower, first):  # batches of two workers come in any order
        kept.add(one)
    assert kept.marks() == {
        ROW: {
            2: Exemplar(b"\x0b" * 16, SPAN.span_id, 400, 2_000_400),
            3: Exemplar(b"\x0c" * 16, SPAN.span_id, 600, 1_500_600),
        }
    }


def test_newest_is_what_ended_last() -> None:
    kept = Exemplars(8)
    kept.add(of(trace_id=b"\x0a" * 16, start=0, took=90_000))
    kept.add(of(trace_id=b"\x0b" * 16, start=10_000, took=60_000))
    (row,) = kept.marks().values()
    assert [one.trace_id for one in row.values()] == [b"\x0a" * 16]


# ef_stat_bucket's, in microseconds (csrc/stat.c).
BOUNDS = (100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
          1_000_000, 2_500_000, 10_000_000)  # fmt: skip


@pytest.mark.parametrize("took", [0, *(bound + d for bound in BOUNDS for d in (-1, 0, 1)), 10**12])
def test_buckets_are_those_of_the_counters(took: int) -> None:
    kept = Exemplars(8)
    kept.add(of(took=took))
    assert list(kept.marks()[ROW]) == [sum(bound < took for bound in BOUNDS)]


def test_rows_are_bounded_and_the_one_not_told_of_for_longest_goes() -> None:
    kept = Exemplars(3)
    for row in (b"ns/a\t0", b"ns/b\t0", b"ns/c\t0", b"ns/a\t0", b"ns/d\t0"):
        kept.add(of(row=row))
    assert kept.marks().keys() == {b"ns/a\t0", b"ns/c\t0", b"ns/d\t0"}
    for number in range(1000):
        kept.add(of(row=b"ns/more\t%d" % number, took=number * 7))
    assert len(kept.marks()) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"route": b"", "rule": -1, "row": b"-\t-"},
        {"trace_id": b""},
        {"span_id": b"\x01"},
        {"took": -1},
    ],
)
def test_what_no_rule_took_or_is_no_span_is_none(changes: dict[str, Any]) -> None:
    kept = Exemplars(8)
    kept.add(of(**changes))
    assert kept.marks() == {}


def test_what_was_handed_out_stays_as_it_was() -> None:
    kept = Exemplars(8)
    kept.add(of(took=400))
    before = kept.marks()
    kept.add(of(took=600))
    kept.clear()
    assert len(before[ROW]) == 1 and kept.marks() == {}
