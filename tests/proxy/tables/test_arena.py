"""The arena: what readers see, when space comes back, and that it never comes back too early."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.proxy.tables.arena import Arena, ArenaFull, Block, map_arena

SIZE = 1024 * 1024


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena(SIZE)
    yield made
    made.close()


def test_readers_see_what_was_put_and_cannot_write(arena: Arena) -> None:
    view = map_arena(arena.reader_fd, arena.capacity)
    block = arena.put(b"hello")
    assert block.offset % 8 == 0
    assert bytes(view[block.offset : block.offset + block.length]) == b"hello"
    assert arena.read(block) == b"hello"
    assert view.readonly
    with pytest.raises(PermissionError):
        mmap.mmap(arena.reader_fd, 4096)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(arena.reader_fd, b"x")


def test_a_retired_block_is_reused_only_after_its_epoch(arena: Arena) -> None:
    old = arena.put(b"a" * 100)
    keeper = arena.put(b"b" * 100)
    arena.retire(old, epoch=5)
    assert arena.reclaim(4) == 0
    assert arena.read(old) == b"a" * 100
    assert arena.put(b"c" * 100).offset != old.offset
    assert arena.reclaim(5) > 0
    assert arena.put(b"d" * 100).offset == old.offset
    assert arena.read(keeper) == b"b" * 100


def test_pinned_and_restored_blocks_stay(arena: Arena) -> None:
    pinned, restored = arena.put(b"p"), arena.put(b"r")
    arena.retire(pinned, 1)
    arena.retire(restored, 1)
    assert arena.restore(restored)
    assert not arena.restore(restored)
    assert arena.reclaim(9, pinned={pinned.offset}) == 0
    assert arena.reclaim(9) > 0
    assert arena.read(restored) == b"r"


def test_key_material_is_overwritten(arena: Arena) -> None:
    secret = arena.put(b"-----BEGIN PRIVATE KEY-----")
    arena.put(b"after")  # so that the range stays below the top
    arena.retire(secret, 1, wipe=True)
    arena.reclaim(1)
    assert arena.read(secret) == bytes(secret.length)


def test_a_full_arena_says_so_and_stays_usable(arena: Arena) -> None:
    block = arena.put(bytes(SIZE // 2))
    with pytest.raises(ArenaFull, match="do not fit"):
        arena.put(bytes(SIZE // 2 + 1))
    arena.retire(block, 1)
    arena.reclaim(1)
    assert arena.put(bytes(SIZE)).length == SIZE


def test_freed_pages_go_back_to_the_kernel() -> None:
    arena = Arena(256 * 1024 * 1024)
    try:
        block = arena.put(b"x" * (32 * 1024 * 1024))
        assert os.fstat(arena.reader_fd).st_blocks * 512 >= block.length
        arena.retire(block, 1)
        arena.reclaim(1)
        assert os.fstat(arena.reader_fd).st_blocks * 512 < 1024 * 1024
    finally:
        arena.close()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(1, 3000)),
            st.tuples(st.just("replace"), st.integers(0, 50)),
            st.tuples(st.just("leave"), st.integers(0, 3)),
        ),
        max_size=120,
    )
)
def test_no_reader_ever_sees_a_block_change(steps: list[tuple[str, int]]) -> None:
    """Four readers move through epochs at their own pace; each holds what its epoch named."""
    arena = Arena(SIZE)
    try:
        epoch = 1
        live: dict[int, tuple[Block, bytes]] = {}
        tables = {1: dict(live)}
        readers = [1, 1, 1, 1]
        number = 0
        for what, value in steps:
            if what == "put":
                number += 1
                data = number.to_bytes(4, "little") * (value // 4 + 1)
                live[number] = (arena.put(data), data)
            elif what == "replace" and live:
                key = sorted(live)[value % len(live)]
                epoch += 1
                arena.retire(live.pop(key)[0], epoch)
            elif what == "leave":
                readers[value] = epoch
                arena.reclaim(min(readers))
            tables[epoch] = dict(live)
            for reader in readers:
                assert all(arena.read(block) == data for block, data in tables[reader].values())
    finally:
        arena.close()
