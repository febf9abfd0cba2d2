"""One segment, several processes: counts are shared, outlive who made them, and are listed with their names."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edgefast._csrc import lib
from edgefast.proxy.limits.memory import LimitMemory
from rate_limit.memory import Full, MemoryStore

NOW_MS = 1_790_000_000_123
TESTS = Path(__file__).parents[1]


@pytest.fixture
def memory() -> Iterator[LimitMemory]:
    with closing(LimitMemory(1, 4)) as made:
        yield made


@pytest.fixture
def store(memory: LimitMemory) -> Iterator[MemoryStore]:
    with closing(MemoryStore(memory.fd)) as found:
        yield found


def test_another_process_counts_on(memory: LimitMemory, store: MemoryStore) -> None:
    assert store.take(b"shared", 3, 10, 60, False, NOW_MS)[:2] == (3, 7)
    script = (
        "import sys; from rate_limit.memory import MemoryStore; store = MemoryStore(int(sys.argv[1]));"
        f"print(*store.take(b'shared', 5, 10, 60, False, {NOW_MS}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(memory.fd)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"},
        pass_fds=[memory.fd],
        capture_output=True,
        text=True,
        check=True,
    )
    admitted, remaining, reset, window = map(int, done.stdout.split())
    assert (admitted, remaining) == (5, 2)
    assert (window + 60) * 1000 - reset == NOW_MS
    assert store.take(b"shared", 5, 10, 60, False, NOW_MS)[:2] == (2, 0)


def test_live_counters_are_listed(memory: LimitMemory, store: MemoryStore) -> None:
    store.take(b"fixed", 3, 10, 60, False, NOW_MS)
    store.take(b"sliding", 8, 10, 60, True, NOW_MS)
    store.take(b"long" * 100, 1, 10, 3600, False, NOW_MS)
    store.take(b"only read", 0, 10, 3600, False, NOW_MS)
    store.take(b"blocked", 1, 0, 3600, False, NOW_MS)
    window = NOW_MS // 60_000 * 60
    found = {count.key: count for count in memory.read(NOW_MS)}
    assert set(found) == {b"fixed", b"sliding", (b"long" * 100)[: lib.EF_LIMIT_NAME]}
    assert [found[key].whole for key in sorted(found)] == [True, False, True]
    assert (found[b"fixed"].used, found[b"fixed"].window) == (3, window)
    assert found[b"fixed"].left_ms == (window + 60) * 1000 - NOW_MS

    halfway = (window + 90) * 1000
    found = {count.key: count for count in memory.read(halfway)}
    assert b"fixed" not in found, "its window has ended"
    assert (found[b"sliding"].used, found[b"sliding"].window) == (4, window + 60)
    store.take(b"sliding", 2, 10, 60, True, halfway)
    found = {count.key: count for count in memory.read(halfway)}
    assert (found[b"sliding"].used, found[b"sliding"].left_ms) == (6, 30_000)
    assert not list(memory.read((window + 4000) * 1000))


def test_a_full_store_says_so(memory: LimitMemory, store: MemoryStore) -> None:
    full = 0
    for number in range(4 * lib.EF_LIMIT_SLOTS + 1):
        try:
            store.take(b"key %d" % number, 1, 1, 60, False, NOW_MS)
        except Full:
            full += 1
    assert full > 0
    assert len(list(memory.read(NOW_MS))) == 4 * lib.EF_LIMIT_SLOTS + 1 - full
    assert store.take(b"later", 1, 1, 60, False, NOW_MS + 60_000)[0] == 1


def test_memory_is_taken_as_it_is_used() -> None:
    with closing(LimitMemory()) as memory, closing(MemoryStore(memory.fd)) as store:
        assert os.fstat(memory.fd).st_size == lib.ef_store_size(
            lib.EF_STORE_NAMES, lib.EF_STORE_VALUES
        )
        for number in range(100):
            store.take(b"key %d" % number, 1, 1, 60, False, NOW_MS)
        # A page of slots and one of names for each; two headers, which lie apart.
        assert os.fstat(memory.fd).st_blocks * 512 <= 203 * 4096


def test_only_segments_are_taken() -> None:
    fd = os.memfd_create("nothing", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, 65536)
        with pytest.raises(ValueError, match="not a counter store"):
            MemoryStore(fd)
    finally:
        os.close(fd)
    with pytest.raises(ValueError, match="no store of 4370 and 0 buckets"):
        LimitMemory(0)


def test_seeds_differ() -> None:
    """Who knows which keys meet in one store knows nothing of another one."""
    order = []
    for _ in range(2):
        with closing(LimitMemory(1, 64)) as memory, closing(MemoryStore(memory.fd)) as store:
            for number in range(50):
                store.take(b"key %d" % number, 1, 1, 60, False, NOW_MS)
            order.append([count.key for count in memory.read(NOW_MS)])
    assert sorted(order[0]) == sorted(order[1])
    assert order[0] != order[1]


def test_a_flood_of_values_ends_at_the_limits_share(memory: LimitMemory) -> None:
    """By 450,000 values of one limit: a limit without values, and one with others, count as before."""
    with closing(LimitMemory()) as large, closing(MemoryStore(large.fd)) as store:
        large.share_among(2)
        share = large.share(sliding=False)
        assert share == lib.EF_STORE_VALUES * lib.EF_LIMIT_SLOTS // 4
        counted = 0
        for number in range(450_000):
            with contextlib.suppress(Full):
                store.take(b"flood%d" % number, 1, 5, 3600, False, NOW_MS, b"flood")
                counted += 1
        assert counted == share
        taken = [store.take(b"login", 1, 2, 60, False, NOW_MS)[0] for _ in range(200)]
        assert sum(taken) == 2
        for number in range(share):
            assert store.take(b"other%d" % number, 9, 5, 3600, False, NOW_MS, b"other")[0] == 5
        rooms = {one.key: one.used for one in large.read(NOW_MS) if one.of_name}
        assert rooms == {b"flood": share, b"other": share, b"login": 2}
