"""Limit memory: shared memory of rate-limit counters, created by the agent or its predecessor, mapped by every worker.

In: the number of limits with distinct values, which divide the space; the predecessor's store, if
it transferred one with this release's layout.
Out: a descriptor of a store (csrc/limit_store.h), and its present counters. The memory outlives
workers and agents that transfer it, so counters continue after a replacement.
Must never: be written by the agent after creation, except for the number of limits. Only one
process writes that: the predecessor, until it has released the sockets.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgefast._csrc import ffi, lib
from edgefast.proxy.limits.rows import Count

__all__ = ["LimitMemory"]

log = logging.getLogger(__name__)

#: Who maps it is never left with less than was there (fcntl(2): file seals).
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class LimitMemory:
    """The machine's store. `names` and `values`: buckets of limits, and of their values."""

    def __init__(
        self,
        values: int = lib.EF_STORE_VALUES,
        names: int = lib.EF_STORE_NAMES,
        *,
        inherited: int | None = None,
    ) -> None:
        """`inherited`: a descriptor of a store, owned from here on. Raises ValueError for what is no store of this layout and size."""
        self._shares = True
        self._limits: int | None = None  # that share the space, as far as this process knows
        if inherited is not None:
            try:
                _check(inherited, values, names)
            except (ValueError, OSError) as error:
                os.close(inherited)
                raise ValueError(str(error)) from None
            self.fd = inherited
            return
        epoch = _milliseconds(time.CLOCK_REALTIME) - _milliseconds(time.CLOCK_BOOTTIME)
        size = int(lib.ef_store_size(names, values))
        self.fd = os.memfd_create("edgefast-limits", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SEALS)
        with mmap.mmap(self.fd, size) as memory:
            seed = os.urandom(lib.EF_LIMIT_SEED)
            view = ffi.from_buffer(memory)
            made = lib.ef_store_init(view, size, names, values, seed, epoch)
            ffi.release(view)
            if made != 0:
                raise ValueError(f"no store of {names} and {values} buckets")

    @classmethod
    def go_on(cls, inherited: int | None) -> LimitMemory:
        """Return the store of the process before, whose counts go on, or else a new one."""
        if inherited is None:
            return cls()
        try:
            found = cls(inherited=inherited)
        except ValueError as error:
            log.warning(
                "rate limits: the counters start at zero; the store of the previous process "
                "cannot be used: %s",
                error,
            )
            return cls()
        log.info("rate limits: the counters of the previous process stay in use")
        return found

    def release_ownership(self) -> None:
        """Leave the number of limits to another process: who serves with this store, or who has taken it over."""
        self._shares = False

    def take_charge(self) -> None:
        """Nobody else serves with this store any more: the number of limits is this process's."""
        self._shares = True
        if self._limits is not None:
            self.share_among(self._limits)

    def share_among(self, limits: int) -> None:
        """Set the number of limits with distinct values; each gets its part of the space."""
        self._limits = limits
        if not self._shares:
            return
        with self._mapped() as store:
            lib.ef_store_set_limits(store, limits)

    def share(self, *, sliding: bool) -> int:
        """Return how many values of one limit may begin in a window."""
        with self._mapped() as store:
            return int(lib.ef_store_share(store, sliding))

    @contextmanager
    def _mapped(self) -> Iterator[Any]:
        with mmap.mmap(self.fd, 0) as memory:
            view = ffi.from_buffer(memory)
            try:
                yield ffi.cast("ef_store *", view)
            finally:
                ffi.release(view)

    def now(self) -> int:
        """Milliseconds since 1970 by the segment's clock, which no wall clock moves."""
        with self._mapped() as store:
            return int(lib.ef_store_now(store, _milliseconds(time.CLOCK_BOOTTIME)))

    def read(self, now_ms: int) -> Iterator[Count]:
        """Walk the live counters; one that comes or goes in the meantime may be missed."""
        return _walk(mmap.mmap(self.fd, 0, prot=mmap.PROT_READ), now_ms)

    def close(self) -> None:
        """Let go of the memory."""
        os.close(self.fd)


def _check(fd: int, values: int, names: int) -> None:
    """Raise ValueError or OSError when this is no store that this release would make with so much room."""
    if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
        raise ValueError("its size can change")
    with mmap.mmap(fd, 0) as memory:
        view = ffi.from_buffer(memory)
        layout = lib.ef_store_check(view, len(view))
        same = layout == 0 and lib.ef_store_holds(ffi.cast("ef_store *", view), names, values)
        ffi.release(view)
    if layout != 0:
        raise ValueError("its layout is of another release")
    if not same:
        raise ValueError("its capacity is of another release")


def _milliseconds(clock: int) -> int:
    return time.clock_gettime_ns(clock) // 1_000_000


def _walk(memory: mmap.mmap, now_ms: int) -> Iterator[Count]:
    with memory:
        view = ffi.from_buffer(memory)
        try:
            store = ffi.cast("const ef_store *", view)
            cursor, entry = ffi.new("uint64_t *"), ffi.new("ef_limit_entry *")
            is_name = ffi.new("int *")
            while lib.ef_store_next(store, cursor, now_ms, entry, is_name) == 1:
                yield _read(entry, now_ms, bool(is_name[0]))
        finally:
            ffi.release(view)


def _read(entry: Any, now_ms: int, of_name: bool) -> Count:
    """Copy an entry; one whose name is not known has no key."""
    span = entry.unit * 1000
    passed = max(0, now_ms - entry.window * 1000)
    left = max(
        1, span - passed
    )  # a window that begins by another worker's clock has not begun here
    weight = entry.previous * left // span if entry.sliding else 0
    return Count(
        key=bytes(ffi.buffer(entry.key, entry.kept)),
        whole=entry.kept == entry.key_len and entry.unit > 0,
        window=entry.window,
        used=entry.current + weight,
        left_ms=left,
        of_name=of_name,
    )
