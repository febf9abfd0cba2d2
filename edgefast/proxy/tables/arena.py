"""Arena: the one shared mapping that holds every blob of the table, whatever the number of workers.

In: bytes to store, and the epochs at which blocks were replaced.
Out: blocks (offset, length) that never move, a read-only descriptor for workers. A replaced block
is *retired* with the epoch of the table that no longer names it. Its space is reused only when
every worker has left the tables before that epoch (architecture: epoch reclaim).
Must never: write into a block that can be read.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Container
from typing import NamedTuple

from edgefast.proxy.tables.extents import ALIGN, Extents, rounded

__all__ = ["Arena", "ArenaFull", "Block", "map_arena"]

#: Give pages back to the kernel once this much has been freed since the last time ...
_TRIM_EVERY = 4 * 1024 * 1024
#: ... but only from free ranges at least this long: a system call per blob would cost more.
_TRIM_RANGE = 256 * 1024
_SMALLEST = 256 * 1024 * 1024


class ArenaFull(Exception):
    """The table does not fit into the reserved range."""


class Block(NamedTuple):
    """A place in the arena; offset is a multiple of 8."""

    offset: int
    length: int


class _Retired(NamedTuple):
    block: Block
    epoch: int
    wipe: bool


def map_arena(fd: int, capacity: int) -> memoryview:
    """Map an arena's read-only descriptor; the view is as long as the reserved range."""
    return memoryview(mmap.mmap(fd, capacity, prot=mmap.PROT_READ))


class Arena:
    """The writer's side, in the agent."""

    def __init__(self, capacity: int) -> None:
        """Reserve `capacity` bytes, or the largest power-of-two part the kernel grants."""
        fd = os.memfd_create("edgefast-table", os.MFD_CLOEXEC)
        try:
            self._map, self.capacity = _reserve(fd, capacity // ALIGN * ALIGN)
            # A second, read-only open file: whoever holds only this one cannot map it writable.
            self.reader_fd = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(fd)  # the mapping keeps the memory
        self._extents = Extents(self.capacity)
        self._retired: dict[int, _Retired] = {}  # by offset, in the order of epochs
        self._since_trim = 0
        self._trimmed_top = 0

    @property
    def used(self) -> int:
        """Bytes in blocks, retired ones included."""
        return self._extents.top - self._extents.free

    @property
    def retired(self) -> int:
        """Bytes in blocks that wait for workers to leave them."""
        return sum(rounded(one.block.length) for one in self._retired.values())

    def put(self, data: bytes) -> Block:
        """Copy `data` in; raises ArenaFull."""
        offset = self._extents.take(len(data))
        if offset is None:
            raise ArenaFull(
                f"{len(data)} bytes do not fit: {self.used} of {self.capacity} bytes in use"
            )
        self._map[offset : offset + len(data)] = data
        return Block(offset, len(data))

    def read(self, block: Block) -> bytes:
        """Return a copy of a block's bytes."""
        return self._map[block.offset : block.offset + block.length]

    def discard(self, block: Block) -> None:
        """Free a block that no worker was ever told of."""
        self._free(block, wipe=True)

    def retire(self, block: Block, epoch: int, *, wipe: bool = False) -> None:
        """Free a block once all workers are at `epoch` or later; `wipe` overwrites key material."""
        self._retired[block.offset] = _Retired(block, epoch, wipe)

    def restore(self, block: Block) -> bool:
        """Take back `retire`: the table names the block again. False when it was not retired."""
        return self._retired.pop(block.offset, None) is not None

    def reclaim(self, floor: int, pinned: Container[int] = ()) -> int:
        """Free what was retired at or before epoch `floor`, except offsets in `pinned`.

        Returns the bytes freed.
        """
        ripe: list[_Retired] = []
        for one in self._retired.values():
            if one.epoch > floor:
                break
            if one.block.offset not in pinned:
                ripe.append(one)
        for one in ripe:
            del self._retired[one.block.offset]
            self._free(one.block, wipe=one.wipe)
        if self._since_trim >= _TRIM_EVERY:
            self._trim()
        return sum(rounded(one.block.length) for one in ripe)

    def close(self) -> None:
        """Give the descriptor and the mapping back."""
        os.close(self.reader_fd)
        self._map.close()

    def _free(self, block: Block, *, wipe: bool) -> None:
        if wipe:
            self._map[block.offset : block.offset + block.length] = bytes(block.length)
        self._trimmed_top = max(self._trimmed_top, self._extents.top)
        self._extents.give(block.offset, block.length)
        self._since_trim += rounded(block.length)

    def _trim(self) -> None:
        """Return whole free pages to the kernel."""
        self._since_trim = 0
        page = mmap.PAGESIZE
        tail = (self._extents.top, self._trimmed_top - self._extents.top)
        for offset, length in (*self._extents.ranges(), tail):
            start = (offset + page - 1) // page * page
            end = min((offset + length) // page * page, self.capacity // page * page)
            if end - start >= _TRIM_RANGE:
                self._map.madvise(mmap.MADV_REMOVE, start, end - start)
        self._trimmed_top = self._extents.top


def _reserve(fd: int, capacity: int) -> tuple[mmap.mmap, int]:
    """Map the range shared and writable; halve it where RLIMIT_AS or RLIMIT_FSIZE is in the way."""
    while True:
        try:
            os.ftruncate(fd, capacity)
            return mmap.mmap(fd, capacity), capacity
        except OSError:
            if capacity // 2 < _SMALLEST:
                raise
            capacity //= 2
