"""Counters as rows: which limit a key belongs to, which values it has, who comes first."""

from __future__ import annotations

import pytest

from edgefast import ir
from edgefast.proxy.limits.rows import Count, LimitIndex, order

pytestmark = pytest.mark.pure


def parts(*texts: bytes) -> bytes:
    return b"".join(b"%d:%b" % (len(text), text) for text in texts)


def name_of(limit: str, route: str = "ns/web", rule: str = "n=all") -> str:
    return parts(route.encode(), rule.encode(), limit.encode()).decode()


PLAIN = ir.RateLimit(name="ns/plain#0", counter=name_of("aaaa"), requests=10, unit=60)
TWICE = ir.RateLimit(name="ns/plain#1", counter=name_of("aaaa-2"), requests=5, unit=60)
EACH = ir.RateLimit(
    name="ns/each#0",
    counter=name_of("bbbb"),
    requests=2,
    unit=3600,
    distinct_headers=("x-plan", "x-user"),
    distinct_source=True,
    shadow=True,
    sliding=True,
)
RULE = ir.Rule(route="ns/web", index=3, name="all", rate_limits=(PLAIN, TWICE, EACH))


def count(key: bytes, used: int = 1, *, whole: bool = True, left_ms: int = 1500) -> Count:
    return Count(key=key, whole=whole, window=1_700_000_040, used=used, left_ms=left_ms)


def test_a_counter_without_values() -> None:
    row = LimitIndex([RULE, RULE]).describe(count(PLAIN.counter.encode(), 4))
    assert row is not None
    assert (row.route, row.rule, row.limit) == ("ns/web", "all", "ns/plain#0")
    assert (row.requests, row.used, row.remaining, row.limited) == (10, 4, 6, False)
    assert (row.reset, row.window, row.unit) == (2, 1_700_000_040, 60)
    assert (row.values, row.cut, row.shadow, row.sliding) == ({}, False, False, False)


def test_values_are_named_and_shown_as_they_are() -> None:
    key = EACH.counter.encode() + parts(b"4:free", b"\xff\n:", b"10.0.0.1")
    row = LimitIndex([RULE]).describe(count(key, 2))
    assert row is not None
    assert row.values == {"x-plan": "4:free", "x-user": "\\xff\n:", "sourceCIDR": "10.0.0.1"}
    assert (row.limited, row.shadow, row.sliding, row.cut) == (True, True, True, False)


def test_limits_whose_names_begin_alike_are_apart() -> None:
    index = LimitIndex([RULE])
    assert len(index) == 3
    for limit in (PLAIN, TWICE):
        row = index.describe(count(limit.counter.encode()))
        assert row is not None and row.limit == limit.name


def test_a_rule_without_a_name_is_known_by_its_place() -> None:
    row = LimitIndex([ir.Rule(route="ns/web", index=3, rate_limits=(PLAIN,))]).describe(
        count(PLAIN.counter.encode())
    )
    assert row is not None and row.rule == "3"


def test_a_limit_that_was_lowered_has_nothing_left() -> None:
    row = LimitIndex([RULE]).describe(count(PLAIN.counter.encode(), 25))
    assert row is not None
    assert (row.used, row.remaining, row.limited) == (25, 0, True)


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"probe",
        b"x:1",
        b":",
        b"99999999999999999:a",
        name_of("cccc").encode(),
        parts(b"ns/web", b"n=all"),
        parts(b"ns/web", b"n=all", b"aaa"),
    ],
)
def test_counters_of_others_are_no_rows(key: bytes) -> None:
    index = LimitIndex([RULE])
    assert index.describe(count(key)) is None
    assert LimitIndex([ir.Rule(route="r", index=0)]).describe(count(key)) is None


@pytest.mark.parametrize("length", range(len(EACH.counter), len(EACH.counter) + 30))
def test_a_key_that_is_cut_shows_what_is_known(length: int) -> None:
    values = [b"free", b"alice", b"192.168.100.200"]
    key = (EACH.counter.encode() + parts(*values))[:length]
    row = LimitIndex([RULE]).describe(count(key, whole=False))
    assert row is not None and row.cut
    shown = [value.encode() for value in row.values.values()]
    assert all(whole.startswith(some) for whole, some in zip(values, shown, strict=False))


def test_a_name_that_is_cut_is_found_when_only_one_begins_so() -> None:
    index = LimitIndex([RULE])
    start = EACH.counter.encode()[:-2]
    row = index.describe(count(start, whole=False))
    assert row is not None
    assert (row.limit, row.values, row.cut) == ("ns/each#0", {}, True)
    assert index.describe(count(start)) is None  # whole, and no name
    assert index.describe(count(start[:10], whole=False)) is None  # of any of the three
    assert LimitIndex([RULE]).describe(count(b"", whole=False)) is None
    assert LimitIndex([ir.Rule("r", 0, rate_limits=(PLAIN,))]).describe(
        count(b"", whole=False)
    ) is None  # fmt: skip


def test_who_is_limited_comes_first_then_who_is_near() -> None:
    index = LimitIndex([RULE])
    counts = [
        count(PLAIN.counter.encode(), 1),
        count(EACH.counter.encode() + parts(b"a", b"b", b"::1"), 1),
        count(EACH.counter.encode() + parts(b"a", b"a", b"::1"), 2),
        count(TWICE.counter.encode(), 5),
    ]
    rows = [row for one in counts if (row := index.describe(one))]
    shown = [(row.limit, row.used) for row in sorted(rows, key=order)]
    assert shown == [("ns/each#0", 2), ("ns/plain#1", 5), ("ns/each#0", 1), ("ns/plain#0", 1)]
