"""Extents: the free bytes of a fixed range. Pure bookkeeping, no memory of its own.

In: sizes to allocate and ranges to release.
Out: offsets, always multiples of ALIGN. Best fit over the free ranges, else the unused end;
neighbours merge when freed.
Must never: allocate a byte twice; tests/proxy/tables/test_extents.py compares it with a simple
model.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

__all__ = ["ALIGN", "Extents", "rounded"]

#: Blobs need 8; a cache line each keeps readers of one blob off the lines of another being written.
ALIGN = 64


def rounded(size: int) -> int:
    """Return the bytes that an allocation of `size` really takes."""
    return max(ALIGN, (size + ALIGN - 1) // ALIGN * ALIGN)


class Extents:
    """Free-space map of [0, capacity)."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.top = 0  # everything from here on was never used, or has come back
        self.free = 0  # bytes in free ranges below top
        self._starts: list[int] = []  # sorted offsets of free ranges
        self._length: dict[int, int] = {}
        self._by_size: list[tuple[int, int]] = []  # sorted (length, offset)

    def take(self, size: int) -> int | None:
        """Return the offset of `rounded(size)` bytes, or None when no range is large enough."""
        need = rounded(size)
        at = bisect_left(self._by_size, (need, 0))
        if at < len(self._by_size):
            length, offset = self._by_size[at]
            self._drop(offset)
            if length > need:
                self._keep(offset + need, length - need)
            return offset
        if self.top + need > self.capacity:
            return None
        offset = self.top
        self.top += need
        return offset

    def give(self, offset: int, size: int) -> None:
        """Give back what `take(size)` returned."""
        length = rounded(size)
        at = bisect_left(self._starts, offset)
        if at < len(self._starts) and self._starts[at] == offset + length:
            following = self._starts[at]
            length += self._length[following]
            self._drop(following)
        if at > 0:
            before = self._starts[at - 1]
            if before + self._length[before] == offset:
                offset, length = before, length + self._length[before]
                self._drop(before)
        if offset + length == self.top:
            self.top = offset
        else:
            self._keep(offset, length)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield (offset, length) of every free range below `top`, in order."""
        return ((start, self._length[start]) for start in self._starts)

    def _keep(self, offset: int, length: int) -> None:
        insort(self._starts, offset)
        insort(self._by_size, (length, offset))
        self._length[offset] = length
        self.free += length

    def _drop(self, offset: int) -> None:
        length = self._length.pop(offset)
        del self._starts[bisect_left(self._starts, offset)]
        del self._by_size[bisect_left(self._by_size, (length, offset))]
        self.free -= length
