"""Limit count: the number of limits of the table with distinct values, by which the shared memory is divided.

In: the changes of each table, from the worker tables.
Out: the number, written to the store's memory when it changes. Only changed resources are decoded,
in a thread. With counters in Redis, none are decoded.
Must never: delay a table.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping

import msgspec

from edgefast import ir
from edgefast.proxy.limits.memory import LimitMemory
from edgefast.proxy.limits.rows import MARK
from edgefast.proxy.tables.arena import Arena
from edgefast.proxy.tables.worker_tables import Key, Placed
from edgefast.table import decode_rules

__all__ = ["LimitCount"]

log = logging.getLogger(__name__)

_STORE: msgspec.msgpack.Decoder[ir.RateLimitStore] = msgspec.msgpack.Decoder(ir.RateLimitStore)
_STORE_KEY = ("limit_store", "store")


class LimitCount:
    """Counts the limits of a table that have distinct values, to divide shared memory between them."""

    def __init__(self, arena: Arena, memory: LimitMemory) -> None:
        self._arena = arena
        self._memory = memory
        self._wanted = False  # counters are in this memory
        self._moved: dict[
            Key, bytes
        ] = {}  # blobs that nobody has looked at; b"": gone, or without limits
        self._wakeup = asyncio.Event()
        self._names: dict[Key, frozenset[str]] = {}
        self._held: Counter[str] = Counter()  # a route has its limits on each of its hostnames

    def follow(self, touched: Collection[Key], placed: Mapping[Key, Placed]) -> None:
        """Note what a table moved; runs in the loop, where no blob can go."""
        keys = touched
        if _STORE_KEY in touched:
            wanted = self._is_wanted(placed.get(_STORE_KEY))
            if wanted and not self._wanted:
                keys = set(placed)
            self._wanted = wanted
        if not self._wanted:
            return
        for key in keys:
            if key[0] in ("virtual_host", "fragment"):
                one = placed.get(key)
                data = self._arena.read(one.block) if one is not None else b""
                if MARK in data or key in self._names:
                    self._moved[key] = data if MARK in data else b""
                    self._wakeup.set()

    def _is_wanted(self, one: Placed | None) -> bool:
        """Tell whether counters are in this memory; as before, while a store cannot be read: workers refuse it and tell of it."""
        try:
            return one is not None and _STORE.decode(self._arena.read(one.block)).kind == "memory"
        except ValueError as error:
            log.debug("rate limits: the store cannot be read: %s", error)
            return self._wanted

    async def run(self) -> None:
        """Count, whenever there is something new."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            moved, self._moved = self._moved, {}
            for key, names in (await asyncio.to_thread(_read, moved)).items():
                self._held.subtract(self._names.pop(key, frozenset()))
                self._held.update(names)
                if names:
                    self._names[key] = names
            self._held = +self._held
            self._memory.share_among(len(self._held))


def _read(blobs: Mapping[Key, bytes]) -> dict[Key, frozenset[str]]:
    return {key: _names(key, data) if data else frozenset() for key, data in blobs.items()}


def _names(key: Key, data: bytes) -> frozenset[str]:
    """Return the counters' names; none of a blob that cannot be read, which workers refuse and tell of."""
    try:
        rules = decode_rules(data)
    except ValueError as error:
        log.debug("rate limits: the limits of %s %s are not counted: %s", *key, error)
        return frozenset()
    return frozenset(
        limit.counter
        for rule in rules
        for limit in rule.rate_limits
        if limit.kind == "Window" and (limit.distinct_headers or limit.distinct_source)
    )
