"""Extents against a naive model: every byte has at most one owner, whatever the order of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.proxy.tables.extents import ALIGN, Extents, rounded

pytestmark = pytest.mark.pure

CAPACITY = 64 * ALIGN


@given(st.lists(st.one_of(st.integers(0, 5 * ALIGN), st.floats(0, 1)), max_size=200))
def test_no_byte_has_two_owners(steps: list[int | float]) -> None:
    """An integer takes that many bytes, a float gives back one of the blocks taken."""
    extents = Extents(CAPACITY)
    taken: list[tuple[int, int]] = []
    owner: dict[int, int] = {}
    for step in steps:
        if isinstance(step, int):
            offset = extents.take(step)
            if offset is None:
                # Refused only when no free run is long enough.
                assert longest_run(owner) < rounded(step)
                continue
            cells = range(offset, offset + rounded(step), ALIGN)
            assert offset % ALIGN == 0
            assert offset + rounded(step) <= CAPACITY
            assert not any(cell in owner for cell in cells)
            owner.update(dict.fromkeys(cells, offset))
            taken.append((offset, step))
        elif taken:
            offset, size = taken.pop(int(step * (len(taken) - 1)))
            extents.give(offset, size)
            for cell in range(offset, offset + rounded(size), ALIGN):
                del owner[cell]
        assert extents.top - extents.free == len(owner) * ALIGN
        ranges = list(extents.ranges())
        assert sum(length for _, length in ranges) == extents.free
        ends = [start + length for start, length in ranges]
        assert all(end < start for end, (start, _) in zip(ends, ranges[1:], strict=False))
        assert all(end < extents.top for end in ends)


def longest_run(owner: dict[int, int]) -> int:
    """The longest free range, cell by cell."""
    best = run = 0
    for cell in range(0, CAPACITY, ALIGN):
        run = 0 if cell in owner else run + ALIGN
        best = max(best, run)
    return best


def test_everything_given_back_is_one_range_again() -> None:
    extents = Extents(CAPACITY)
    blocks = []
    while (offset := extents.take(100)) is not None:
        blocks.append(offset)
    assert len(blocks) == CAPACITY // rounded(100)
    for offset in blocks[::2] + blocks[1::2]:
        extents.give(offset, 100)
    assert (extents.top, extents.free) == (0, 0)
    assert extents.take(CAPACITY) == 0


def test_best_fit_leaves_long_ranges_whole() -> None:
    extents = Extents(CAPACITY)
    long, _, short, _ = (extents.take(size * ALIGN) for size in (8, 1, 2, 1))
    assert long is not None
    assert short is not None
    extents.give(long, 8 * ALIGN)
    extents.give(short, 2 * ALIGN)
    assert extents.take(2 * ALIGN) == short
    assert extents.take(8 * ALIGN) == long
