"""Counters: pages as a proxy renders them, and what two of them say of the time in between."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import pytest

from edgefast.cli.counters import Page, Row, find_quantile, measure, read_page
from edgefast.core.cells import BUCKET_BOUNDS_MS, LIMIT, ROW
from edgefast.proxy.metrics.exposition import render_metrics
from edgefast.proxy.metrics.stats import Segment
from proxy.agent_facts import FACTS

pytestmark = pytest.mark.pure


class Rendered(Segment):
    """A segment with rows that no worker has written."""

    def __init__(self, rows: dict[str, dict[str, int]]) -> None:
        super().__init__(8)
        self._given = rows

    def rows(self) -> Iterator[tuple[bytes, Sequence[int]]]:
        for label, cells in self._given.items():
            yield label.encode(), [cells.get(name, 0) for name in ROW] + [0] * len(LIMIT)


def page(at: float, rows: dict[str, dict[str, int]]) -> Page:
    """A page as the metrics server writes it."""
    segment = Rendered(rows)
    try:
        return read_page(render_metrics([segment], FACTS).decode(), at)
    finally:
        segment.close()


def test_a_page_of_a_proxy_is_read() -> None:
    read = page(
        1.0,
        {
            "default/web\tone": {"requests_2xx": 5, "requests_5xx": 1, "duration_bucket_3": 6},
            "default/web\ttwo": {"requests_4xx": 2, "requests_aborted": 3, "duration_bucket_0": 5},
            'shop/odd\ta"b\\c': {"requests_2xx": 1, "duration_bucket_15": 1},
        },
    )
    assert (read.version, read.table, read.ready) == ("1.2.3", "abcdef0123", True)
    assert [read.number(one) for one in ("workers", "workers_alive", "config_problems")] == [
        2,
        1,
        2,
    ]
    assert read.stores == {("redis:6379", "down"): 2}
    assert read.routes.keys() == {"default/web", "shop/odd"}
    web = read.routes["default/web"]
    assert (web.requests, web.errors) == (11, 4)
    assert web.buckets[BUCKET_BOUNDS_MS[0] / 1000] == 5
    assert web.buckets[float("inf")] == 11


def test_another_page_is_none() -> None:
    with pytest.raises(ValueError, match="not the metrics"):
        read_page("# HELP x y\nup 1\n", 0.0)


def test_rates_are_of_the_time_between() -> None:
    def at(seconds: float, requests: int, errors: int = 0) -> Page:
        buckets = {0.001: requests // 2, 0.01: requests, float("inf"): requests}
        return Page(at=seconds, routes={"a/b": Row(requests, errors, buckets)})

    (rate,) = measure({"p": at(10, 100)}, {"p": at(12, 300, 20)})
    assert (rate.requests_per_second, rate.error_share) == (100.0, 0.1)
    assert rate.p50_ms == 1.0 and rate.p99_ms == pytest.approx(9.82)
    # Several proxies add up, each over its own time; one that is new has no numbers yet.
    pages = {"p": at(12, 300), "q": at(14, 400), "new": at(12, 10_000)}
    (rate,) = measure({"p": at(10, 100), "q": at(10, 0)}, pages)
    assert rate.requests_per_second == 200.0
    # A proxy that began anew has counted since then.
    (rate,) = measure({"p": at(10, 1000)}, {"p": at(12, 50)})
    assert rate.requests_per_second == 25.0
    (rate,) = measure({"p": at(10, 7)}, {"p": at(12, 7)})
    assert (rate.requests_per_second, rate.error_share, rate.p99_ms) == (0.0, 0.0, None)
    assert measure({}, {"p": at(12, 7)}) == ()


@pytest.mark.parametrize("seed", range(20))
def test_quantiles_are_in_the_bucket_of_the_real_one(seed: int) -> None:
    chance = random.Random(seed)
    bounds = [one / 1000 for one in BUCKET_BOUNDS_MS]
    values = sorted(chance.expovariate(chance.choice([1, 30, 1000])) for _ in range(500))
    counts = {bound: sum(one <= bound for one in values) for bound in [*bounds, float("inf")]}
    for share in (0.5, 0.99):
        real = _quantile(values, share)
        found = find_quantile(counts, share)
        assert found is not None
        at = bisect_left(bounds, real)
        low = bounds[at - 1] if at else 0.0
        high = bounds[at] if at < len(bounds) else bounds[-1]
        assert low * 1000 - 1e-3 <= found <= high * 1000 + 1e-3


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many are not above."""
    return values[max(int(share * len(values) + 0.9999999) - 1, 0)]


@pytest.mark.parametrize("number", ["1e999", "nan", "-1e999", "1" + "0" * 400])
def test_a_number_that_is_none_is_no_page(number: str) -> None:
    """Any pod may answer anything; that must not end the screen for the others."""
    with pytest.raises(ValueError, match="metric value|not the metrics"):
        read_page(f"edgefast_workers {number}\n", 1.0)
