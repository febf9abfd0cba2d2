"""The list of live counters: what the script wrote, read back by a clock; bounded, and silent about foreign keys."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.rate_limit.error_reply import Refused
from edgefast.rate_limit.redis_list import LiveCounter, list_counters, read_counter
from edgefast.rate_limit.tags import PROBES, redis_key
from rate_limit.caller import Ask, calling, config_of
from rate_limit.reference import UNITS, weigh
from rate_limit.servers import RedisServer
from wire.harness.ports import free_port


async def test_what_is_counted_is_listed(server: RedisServer) -> None:
    config = config_of(server.address)
    empty = await list_counters(config)
    assert (empty.counters, empty.complete) == ([], True)
    async with calling(config) as caller:
        one = await caller.settled(Ask(b"one", n=3, unit=86400))
        two = await caller.settled(Ask(b"r:2:xy,", n=9, limit=5, unit=604800, sliding=True))
        await caller.settled(Ask(b"blocked", limit=0))
    with contextlib.closing(server.client()) as client:
        client.set("foreign", "x")
        client.set(redis_key(b"text"), "x")
        client.hset(redis_key(b"hash"), "a", "b")
        client.set("ef:other", b"\0" * 18)
    listing = await list_counters(config)
    assert listing.complete
    first, second = sorted(listing.counters, key=lambda counter: counter.key)
    assert (first.key, first.window, first.unit, first.count) == (b"one", one[3], 86400, 3)
    assert (second.key, second.window, second.count) == (b"r:2:xy,", two[3], 5)
    assert not first.sliding and second.sliding
    assert 0 <= one[2] - first.remaining_ms < 60_000
    assert 0 < second.remaining_ms <= 604_800_000


async def test_the_list_is_bounded(server: RedisServer) -> None:
    config = config_of(server.address)
    async with calling(config) as caller:
        await caller.take(*(Ask(b"k%d" % number) for number in range(1200)))
    listing = await list_counters(config)
    assert (len(listing.counters), listing.complete) == (1200, True)
    assert len({counter.key for counter in listing.counters}) == 1200
    listing = await list_counters(config, most=100)
    assert (len(listing.counters), listing.complete) == (100, False)


async def test_a_store_that_does_not_answer_is_said(server: RedisServer) -> None:
    with pytest.raises(Refused, match="Connection refused"):
        await list_counters(config_of(f"127.0.0.1:{free_port()}"))
    with pytest.raises(Refused, match="user or the password"):
        await list_counters(config_of(server.address, password="wrong"))
    server.pause()
    try:
        with pytest.raises(Refused, match="in time"):
            await list_counters(config_of(server.address), deadline=0.2)
    finally:
        server.resume()


@pytest.mark.pure
@given(
    unit=st.sampled_from(UNITS),
    current=st.integers(0, 2**32 - 1),
    previous=st.integers(0, 2**32 - 1),
    sliding=st.booleans(),
    share=st.floats(-0.5, 2.5),
)
def test_values_are_read_as_the_algorithm_counts(
    unit: int, current: int, previous: int, sliding: bool, share: float
) -> None:
    window = 1_790_000_000 // unit * unit
    value = struct.pack("<IBIIIB", window, 0, unit, current, previous, sliding)
    span = unit * 1000
    now_ms = window * 1000 + int(span * share)
    found = read_counter(redis_key(b"k"), value, now_ms)
    start = window + unit if sliding and now_ms >= window * 1000 + span else window
    passed = max(0, now_ms - start * 1000)
    if start > window:
        current, previous = 0, current
    count = current + (weigh(previous, passed, span) if sliding else 0)
    if passed >= span or not count:
        assert found is None
    else:
        assert found == LiveCounter(b"k", start, unit, count, span - passed, sliding)


@pytest.mark.pure
def test_what_is_no_counter() -> None:
    value = struct.pack("<IBIIIB", 1_790_000_000, 0, 1, 1, 0, 0)
    assert read_counter(redis_key(b"k"), value, 1_790_000_000_500) is not None
    assert read_counter(PROBES[5], value, 1_790_000_000_500) is None
    assert read_counter(redis_key(b"k"), value[:-1], 1_790_000_000_500) is None
    assert read_counter(redis_key(b"k"), b"", 1_790_000_000_500) is None
