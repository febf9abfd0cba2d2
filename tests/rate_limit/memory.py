"""The shared-memory store with the reference's interface, for tests: the engine calls the same C without Python.

In: the descriptor of a segment (edgefast.proxy.limits.memory.LimitMemory). Out: take() as ReferenceStore.take; `Full` when there
is no room. Nothing here counts: every number comes from csrc/limit.c.
"""

from __future__ import annotations

import mmap

from edgefast._csrc import ffi, lib


class Full(Exception):
    """Every slot that the counter could have belongs to a window that has not ended, or the limit's share is used up."""


class MemoryStore:
    """One worker's view of the segment."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, 0)
        self._view = ffi.from_buffer(self._map, require_writable=True)
        if lib.ef_store_check(self._view, len(self._map)) != 0:
            raise ValueError("not a counter store")
        self._store = ffi.cast("ef_store *", self._view)
        self._result = ffi.new("ef_limit_result *")

    def take(
        self,
        key: bytes,
        n: int,
        limit: int,
        unit: int,
        sliding: bool,
        now_ms: int,
        name: bytes | None = None,
    ) -> tuple[int, int, int, int]:
        """Admit up to n of n requests: (admitted, remaining, reset_ms, window_start_s).

        `name`: of the limit, which the key begins with; None: the key is the name of one without values.
        """
        got = self._result
        length = len(key if name is None else name)
        store = self._store
        if lib.ef_store_take(store, key, len(key), length, n, limit, unit, sliding, now_ms, got):
            raise Full
        return got.admitted, got.remaining, got.reset_ms, got.window

    def close(self) -> None:
        """Let go of the mapping; the counters stay."""
        ffi.release(self._view)
        self._map.close()
