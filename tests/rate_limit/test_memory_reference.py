"""The shared-memory store gives the reference's numbers, and hashes keys as SipHash-1-3 says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast._csrc import ffi, lib
from edgefast.proxy.limits.memory import LimitMemory
from rate_limit.memory import Full, MemoryStore
from rate_limit.reference import UNITS, ReferenceStore

NOW_MS = 1_790_000_000_123
LARGEST = 2**32 - 1


def fresh(buckets: int = 1) -> MemoryStore:
    """An empty store; the mapping keeps the memory."""
    with closing(LimitMemory(1, buckets)) as memory:
        return MemoryStore(memory.fd)


def limits() -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, 20), st.integers(0, 2000), st.integers(0, LARGEST))


def numbers() -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, 5), st.integers(0, 65535))


@st.composite
def moves(draw: st.DrawFn, unit: int) -> int:
    """Milliseconds to the next check; the interesting ones are about a window."""
    span = unit * 1000
    return draw(
        st.one_of(
            st.integers(0, span // 3),
            st.integers(-span, 3 * span),
            st.sampled_from((0, 1, span - 1, span, span + 1)),
        )
    )


@pytest.mark.pure
@settings(max_examples=150, deadline=None)
@given(data=st.data(), unit=st.sampled_from(UNITS), sliding=st.booleans())
def test_every_number_is_the_references(data: st.DataObject, unit: int, sliding: bool) -> None:
    """One counter, a clock that goes both ways."""
    reference, now = ReferenceStore(), NOW_MS
    chosen = data.draw(st.lists(limits(), min_size=1, max_size=3))
    with closing(fresh()) as store:
        for _ in range(data.draw(st.integers(1, 30))):
            now = now + data.draw(moves(unit))
            check = (b"k", data.draw(numbers()), data.draw(st.sampled_from(chosen)), unit, sliding)
            assert store.take(*check, now) == reference.take(*check, now)


@pytest.mark.pure
@pytest.mark.parametrize("count", [3, 20, 40, 150])
def test_counters_that_share_a_bucket(count: int) -> None:
    """Many counters in one bucket, evicted and made again as time goes on: nothing that matters is forgotten."""
    random = Random(count)
    refused = 0
    for _ in range(10):
        units = [random.choice(UNITS[:3]) for _ in range(count)]
        kinds = [random.random() < 0.5 for _ in range(count)]
        reference, now = ReferenceStore(), NOW_MS
        with closing(fresh()) as store:
            for _ in range(1000):
                now += random.choice((0, 1, 50, 999, 1000, 7000, random.randrange(90_000)))
                at = random.randrange(count)
                check = (b"key %d" % at, random.randrange(6), 7, units[at], kinds[at])
                try:
                    got = store.take(*check, now)
                except Full:
                    refused += 1
                    continue
                assert got == reference.take(*check, now)
    assert (refused > 0) == (count > lib.EF_LIMIT_SLOTS)


@pytest.mark.pure
@settings(max_examples=100, deadline=None)
@given(
    counts=st.tuples(st.integers(0, LARGEST), st.integers(0, LARGEST)),
    limit=st.one_of(st.integers(0, LARGEST), st.integers(LARGEST - 5, LARGEST), st.just(1)),
    unit=st.sampled_from(UNITS),
    n=st.integers(0, 65535),
    age=st.integers(0, 2),
    data=st.data(),
)
def test_large_counts_are_exact(
    counts: tuple[int, int], limit: int, unit: int, n: int, age: int, data: st.DataObject
) -> None:
    """Products of counts and milliseconds exceed 64 bits."""
    reference = ReferenceStore()
    window = NOW_MS // 1000 // unit
    with closing(fresh()) as store:
        for step, count in enumerate(counts):
            start = (window + step) * unit * 1000
            check = (b"k", count, min(2 * count, LARGEST), unit, True)
            assert store.take(*check, start) == reference.take(*check, start)
        now = (window + 1 + age) * unit * 1000 + data.draw(st.integers(0, unit * 1000 - 1))
        check = (b"k", n, limit, unit, True)
        assert store.take(*check, now) == reference.take(*check, now)


@pytest.fixture(scope="module")
def store() -> Iterator[MemoryStore]:
    with closing(fresh(16)) as found:
        yield found


@pytest.mark.pure
def test_parts_of_keys_cannot_be_mixed_up(store: MemoryStore) -> None:
    keys = [b"3:a_b,1:c,", b"1:a,3:b_c,", b"3:a_b,1:c", b"", b"\0", b"\0\0", b"x" * 5000]
    for key in keys:
        assert store.take(key, 7, 10, 60, False, NOW_MS)[:2] == (7, 3)
    for key in keys:
        assert store.take(key, 7, 10, 60, False, NOW_MS)[:2] == (3, 0)


def test_the_hash_is_siphash() -> None:
    """CPython hashes bytes with SipHash-1-3; a hash seed of 0 is a key of zeros."""
    if sys.hash_info.algorithm != "siphash13":  # a build option of CPython before 3.11
        raise AssertionError("this CPython cannot be the judge")
    texts = [os.urandom(length) for length in range(1, 200)]
    script = "import sys; print(*(hash(bytes.fromhex(t)) for t in sys.stdin.read().split()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": "0"},
        input=" ".join(text.hex() for text in texts),
        capture_output=True,
        text=True,
        check=True,
    )
    seed = bytes(lib.EF_SIPHASH_SEED)
    for text, expected in zip(texts, map(int, done.stdout.split()), strict=True):
        got = int(ffi.cast("int64_t", lib.ef_siphash13(seed, text, len(text))))
        assert got == expected
