"""Which counters are forgotten when rows run short, and that live ones never are."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from edgefast.core.cells import ROW
from edgefast.proxy.metrics.row_reclaim import RowReclaim
from edgefast.proxy.metrics.stats import Segment, sum_rows
from proxy.metrics.test_stats import Writer, stat

__all__ = ["stat"]


class Bench:
    """Two workers with 40 rows each."""

    def __init__(self, stat: ctypes.CDLL) -> None:
        self.segments = [Segment(40), Segment(40)]
        self.writers = [Writer(stat, segment) for segment in self.segments]
        self.old = RowReclaim(self.segments)

    def forget(self) -> list[bytes]:
        """Look, and let both workers forget."""
        labels = self.old.look()
        for writer in self.writers:
            for label in labels:
                writer.forget(label)
        return labels


@pytest.fixture
def bench(stat: ctypes.CDLL) -> Iterator[Bench]:
    made = Bench(stat)
    yield made
    for segment in made.segments:
        segment.close()


def name(number: int) -> bytes:
    return b"default/route-%03d\t0" % number


def test_while_there_is_room_nothing_is_forgotten(bench: Bench) -> None:
    for number in range(29):
        bench.writers[0].add(name(number), "requests_2xx", 1)
    assert [bench.forget() for _ in range(3)] == [[], [], []]


def test_what_is_old_goes_and_half_the_rows_are_free(bench: Bench) -> None:
    for number in range(35):
        bench.writers[number % 2].add(name(number), "requests_2xx", 1)
        bench.writers[0].add(name(number), "requests_2xx", 1)
    assert bench.forget() == []  # the first look: nothing is known to be old
    bench.writers[1].add(name(3), "requests_2xx", 1)
    forgotten = bench.forget()
    assert len(forgotten) == 16
    assert name(3) not in forgotten
    assert bench.segments[0].room() == (20, 40)
    rows = sum_rows(bench.segments)
    assert not set(rows) & set(forgotten)  # in both workers: no series goes back
    assert rows[name(3)][ROW.index("requests_2xx")] == 3


def test_what_a_rule_holds_stays(bench: Bench) -> None:
    for number in range(36):
        bench.writers[0].hold(name(number))
    assert [bench.forget() for _ in range(3)] == [[], [], []]
    bench.writers[1].add(b"gone\t0", "requests_2xx", 1)
    assert [bench.forget() for _ in range(3)] == [[], [b"gone\t0"], []]


def test_those_that_were_quiet_for_longest_go_first(bench: Bench) -> None:
    for number in range(20):
        bench.writers[0].add(name(number), "requests_2xx", 1)
    assert bench.old.look() == []
    for number in [*range(20, 35), *range(4)]:
        bench.writers[0].add(name(number), "requests_2xx", 1)
    assert bench.forget() == [name(number) for number in range(4, 20)]


def test_generations_of_routes_fit_for_ever(bench: Bench) -> None:
    for generation in range(30):
        for number in range(8):
            bench.writers[0].add(b"g%d-%d\t0" % (generation, number), "requests_2xx", 1)
        bench.forget()
        bench.forget()
    rows = sum_rows(bench.segments)
    assert not any(rows[b""])
    assert rows[b"g29-7\t0"][ROW.index("requests_2xx")] == 1
