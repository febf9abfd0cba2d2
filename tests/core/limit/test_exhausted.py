"""The memory of counters that are at their end: true until their window ends, bounded, and fair among limits.

In: the cache itself, small. Must never: depend on a clock; the time is an argument.
"""

from __future__ import annotations

from edgefast.core.engine import ExhaustedLimits

LATER = 10_000


def note(
    cache: ExhaustedLimits, counter: bytes, value: int, *, until: int = LATER, now: int = 0
) -> None:
    cache.note(counter, b"%b:%d" % (counter, value), 5, until, 7, now)


def knows(
    cache: ExhaustedLimits, counter: bytes, value: int, *, limit: int = 5, now: int = 0
) -> bool:
    return cache.find(counter, b"%b:%d" % (counter, value), limit, now) is not None


def test_it_knows_a_counter_until_its_window_ends_or_its_limit_changes() -> None:
    cache = ExhaustedLimits()
    note(cache, b"a", 1)
    found = cache.find(b"a", b"a:1", 5, LATER - 1)
    assert found is not None and (found.limit, found.until, found.window) == (5, LATER, 7)
    assert not knows(cache, b"a", 2) and not knows(cache, b"b", 1)
    assert not knows(cache, b"a", 1, limit=6)
    assert knows(cache, b"a", 1)
    assert not knows(cache, b"a", 1, now=LATER)
    assert cache.count == 0
    note(cache, b"a", 1)
    note(cache, b"a", 1, until=LATER + 1)
    assert cache.count == 1 and knows(cache, b"a", 1, now=LATER)
    cache.clear()
    assert cache.count == 0 and not knows(cache, b"a", 1)


def test_a_flood_on_one_limit_costs_that_limit_its_own_oldest() -> None:
    cache = ExhaustedLimits(100)
    for limit in (b"a", b"b"):
        for value in range(10):
            note(cache, limit, value)
    for value in range(1000):
        note(cache, b"flood", value)
        assert cache.count <= 100
    assert all(knows(cache, limit, value) for limit in (b"a", b"b") for value in range(10))
    assert [value for value in range(1000) if knows(cache, b"flood", value)] == [*range(920, 1000)]
    for value in range(10, 20):  # room for those that need it is taken from the same
        note(cache, b"a", value)
    assert all(knows(cache, b"a", value) for value in range(20))
    assert sum(knows(cache, b"flood", value) for value in range(1000)) == 70


def test_a_flood_on_two_limits_leaves_each_of_them_its_part() -> None:
    cache = ExhaustedLimits(100)
    note(cache, b"quiet", 0)
    for value in range(1000):
        note(cache, b"x", value)
    for value in range(1000):
        note(cache, b"x", 1000 + value)
        note(cache, b"y", value)
    parts = [sum(knows(cache, one, value) for value in range(2000)) for one in (b"x", b"y")]
    assert sum(parts) == 99 and min(parts) >= 45, parts
    assert knows(cache, b"quiet", 0)


def test_what_has_ended_goes_first() -> None:
    cache = ExhaustedLimits(10)
    for value in range(4):
        note(cache, b"ended", value, until=5)
    for value in range(6):
        note(cache, b"open", value)
    for value in range(6, 10):
        note(cache, b"open", value, now=5)
    assert all(knows(cache, b"open", value, now=5) for value in range(10))
    assert cache.count == 10


def test_as_many_limits_as_counters_are_bounded_all_the_same() -> None:
    cache = ExhaustedLimits(100)
    for limit in range(1000):
        note(cache, b"%d" % limit, 0)
        assert cache.count <= 100
    assert sum(knows(cache, b"%d" % limit, 0) for limit in range(1000)) == 100
    assert knows(cache, b"999", 0)
