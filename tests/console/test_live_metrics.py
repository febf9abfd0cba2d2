"""Rates and latencies from counters that only grow."""

from __future__ import annotations

import random
from array import array

import pytest

from edgefast.console.live_metrics import Counters, Meter, Rate, make_row, quantile

pytestmark = pytest.mark.pure

BOUNDS = (1.0, 10.0, 100.0)


def row(good: int, failed: int = 0, aborted: int = 0, buckets: tuple[int, ...] = ()) -> array[int]:
    """A row of so many answers; latencies are in the first bucket unless they are given."""
    found = buckets or (good + failed + aborted, 0, 0, 0)
    return make_row((0, good, 0, 0, failed), aborted, 1000 * (good + failed), found)


def test_nothing_is_told_from_one_reading() -> None:
    meter = Meter(BOUNDS)
    meter.take(0.0, Counters({b"a": row(100)}))
    assert meter.window.rate({b"a"}) is None
    assert meter.window.rate_all() is None
    assert meter.window.growth("x") is None
    assert meter.window.since_start({b"a"})["requests"] == 100


def test_rates_are_of_the_window() -> None:
    meter = Meter(BOUNDS)
    meter.take(0.0, Counters({b"a": row(100), b"b": row(5)}))
    meter.take(2.0, Counters({b"a": row(140, 10), b"b": row(5), b"c": row(0, 0, 4)}))
    window = meter.window
    assert window.rate({b"a"}) == Rate(requests=25.0, errors=0.2, p50=0.5, p99=0.99)
    assert window.rate({b"b"}) == Rate()
    both = window.rate(frozenset((b"a", b"b", b"c", b"gone")))
    assert both is not None and (both.requests, both.errors) == (27.0, round(14 / 54, 5))
    assert window.rate_all() == both
    assert window.busiest(2) == [b"a", b"c"]


def test_a_row_that_began_anew_counts_from_zero() -> None:
    meter = Meter(BOUNDS)
    meter.take(0.0, Counters({b"a": row(1000)}))
    meter.take(1.0, Counters({b"a": row(3)}))
    rate = meter.window.rate({b"a"})
    assert rate is not None and rate.requests == 3.0


def test_old_readings_leave() -> None:
    meter = Meter(BOUNDS)
    for second in range(0, 40, 2):
        meter.take(float(second), Counters({b"a": row(second * 10)}))
        assert meter.window.seconds <= 12.0
    rate = meter.window.rate({b"a"})
    assert rate is not None and rate.requests == 10.0
    meter.take(200.0, Counters({b"a": row(10_000)}))  # nobody looked for a while
    assert meter.window.rate({b"a"}) is None


def test_what_did_not_change_is_kept_once() -> None:
    meter = Meter(BOUNDS)
    meter.take(0.0, Counters({b"a": row(1)}))
    meter.take(1.0, Counters({b"a": row(1)}))
    first, second = meter.window.readings
    assert first.counters.rows[b"a"] is second.counters.rows[b"a"]


def test_totals_and_limits() -> None:
    meter = Meter(BOUNDS)
    meter.take(0.0, Counters({}, {b"r\tl": (10, 0, 0, 0)}, {"no_route": 5, "no_listener": 1}))
    meter.take(4.0, Counters({}, {b"r\tl": (14, 8, 0, 4)}, {"no_route": 9, "no_listener": 1}))
    window = meter.window
    assert window.limit_rates(b"r\tl") == (1.0, 2.0, 0.0, 1.0)
    assert window.limit_rates(b"r\tother") == (0.0, 0.0, 0.0, 0.0)
    assert window.growth("no_route", "no_listener") == 1.0
    assert (window.total("no_route"), window.total("unheard")) == (9, 0)


def test_quantiles_are_in_the_bucket_of_the_sample() -> None:
    chance = random.Random(7)
    for _ in range(300):
        samples = sorted(
            chance.choice((0.5, 3.0, 50.0, 500.0)) for _ in range(chance.randint(1, 40))
        )
        buckets = [0, 0, 0, 0]
        for one in samples:
            buckets[sum(one > bound for bound in BOUNDS)] += 1
        for share in (0.5, 0.99):
            found = quantile(buckets, BOUNDS, share)
            assert found is not None
            wanted = samples[max(0, -(-int(share * 100) * len(samples) // 100) - 1)]
            place = sum(wanted > bound for bound in BOUNDS)
            low, high = (0.0, *BOUNDS)[place], (*BOUNDS, BOUNDS[-1])[place]
            assert low <= found <= high, (samples, share)
    assert quantile((0, 0, 0, 0), BOUNDS, 0.5) is None
