"""Limit list: the live rate-limit counters that GET /limits of the admin server returns.

In: the agent's table and counter memory, or the store that the table names.
Out: rows (limits/rows.py), in a bounded time and number; one listing at a time. With Redis, the
agent connects for a listing and then closes the connection. Distinct values come from clients.
Users with access to the admin server can read them, except values of credentials (redact.py).
Must never: show the credentials of the store or of a client, or write to a store.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from heapq import nsmallest
from importlib import import_module
from typing import Any

import msgspec

from edgefast import ir
from edgefast.diagnostics.redact import hide, is_credential
from edgefast.httpd.server import Reply, Request
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.limits.rows import MARK, Count, FullLimit, LimitIndex, LimitRow, order
from edgefast.rate_limit.error_reply import Refused
from edgefast.table import decode_rules

__all__ = ["LimitList", "Listing", "Unread"]

_MOST = 10_000  # counters of one listing
_PATIENCE = 3.0  # seconds for another listing to end
_DEADLINE = 5.0  # seconds for a store to answer
_STORE: msgspec.msgpack.Decoder[ir.RateLimitStore] = msgspec.msgpack.Decoder(ir.RateLimitStore)


class Unread(Exception):
    """The counters cannot be listed now; the text says why."""


class Listing(msgspec.Struct, frozen=True):
    """The answer."""

    store: str
    table: str  # its version
    limits: int  # in the table, one that several hostnames have once
    complete: bool  # False: there are more counters than were read, or than are told
    others: int  # counters that no limit of the table has
    counters: list[LimitRow]
    crowded: list[FullLimit] = []  # shared memory: no room for further values until the window ends
    hidden: bool = False  # values of credentials are told by their length
    #: Parts of the table that cannot be read, and why: counters of limits that only they have are among the `others`.
    unread: dict[str, str] = {}


class LimitList:
    """Answers GET /limits of the admin server with the rate-limit counters."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._turn = asyncio.Lock()
        self._index = LimitIndex(())
        self._unread: dict[str, str] = {}  # parts of the table that are not in the index, and why
        self._epoch = -1  # of the table that the index is of
        self._secret = os.urandom(16)  # no list of guesses can be tried against what is shown

    async def on_limits(self, request: Request) -> Reply:
        """All live counters, or with ?limited=1 those at their end."""
        try:
            listing = await self.read(limited=request.query.get("limited") == "1")
        except Unread as error:
            return Reply(503, f"{error}\n".encode())
        body = await asyncio.to_thread(lambda: msgspec.json.encode(self._hide(listing)))
        return Reply(200, body + b"\n", "application/json")

    async def list_rows(self) -> list[dict[str, Any]]:
        """Return all live counters as they may be shown; raises Unread."""
        listing = await self.read()
        shown: list[dict[str, Any]] = await asyncio.to_thread(
            lambda: msgspec.to_builtins(self._hide(listing).counters)
        )
        return shown

    async def read(self, *, limited: bool = False) -> Listing:
        """Return the counters with the values that clients sent: not for people. Raises Unread."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._turn.acquire()
        except TimeoutError:
            raise Unread("another listing runs; try again") from None
        try:
            return await self._list(limited=limited)
        except Refused as error:
            raise Unread(f"the store does not answer: {error}") from None
        finally:
            self._turn.release()

    def _hide(self, listing: Listing) -> Listing:
        rows = [
            msgspec.structs.replace(
                row, values={name: self._show(name, text) for name, text in row.values.items()}
            )
            if any(map(is_credential, row.values))
            else row
            for row in listing.counters
        ]
        return msgspec.structs.replace(listing, counters=rows, hidden=rows != listing.counters)

    def _show(self, name: str, value: str) -> str:
        """Return a value; of a credential a number beside its length, that tells two of them apart in this process alone."""
        if not is_credential(name):
            return value
        number = blake2b(value.encode(), digest_size=4, key=self._secret).hexdigest()
        return f"{hide(value)} #{number}"

    async def _list(self, *, limited: bool) -> Listing:
        table = self._agent.ledger.current
        store = self._read_store()
        if table.epoch != self._epoch:
            # Bytes are copied here, in the loop, where no epoch can end; decoding is done elsewhere.
            found = (
                (f"{type_} {name}", self._agent.arena.read(one.block))
                for (type_, name), one in table.placed.items()
                if type_ in ("virtual_host", "fragment")
            )
            blobs = {name: data for name, data in found if MARK in data}
            self._index, self._unread = await asyncio.to_thread(_index_of, blobs)
            self._epoch = table.epoch
        counts: Iterable[Count]
        if store.kind == "redis":
            counts, complete = await _read_redis(store)
        else:  # read as rows are made of it: not all of them are kept
            counts, complete = self._agent.limits.read(self._agent.limits.now()), True
        share = self._agent.limits.share
        rooms = (share(sliding=False), share(sliding=True))
        listing = await asyncio.to_thread(
            _join, self._index, counts, complete, limited, store.kind, table.version, rooms
        )
        return msgspec.structs.replace(listing, unread=self._unread)

    def _read_store(self) -> ir.RateLimitStore:
        one = self._agent.ledger.current.placed.get(("limit_store", "store"))
        try:
            return _STORE.decode(self._agent.arena.read(one.block)) if one else ir.RateLimitStore()
        except ValueError as error:
            raise Unread(f"limit_store store of the table cannot be read: {error}") from None


def _index_of(blobs: Mapping[str, bytes]) -> tuple[LimitIndex, dict[str, str]]:
    """Return the limits of the blobs, by name, that can be read, and why others cannot: runs in a thread."""
    rules: list[ir.Rule] = []
    unread: dict[str, str] = {}
    for name, data in blobs.items():
        try:
            rules += decode_rules(data)
        except ValueError as error:
            unread[name] = str(error)
    return LimitIndex(rules), unread


async def _read_redis(store: ir.RateLimitStore) -> tuple[list[Count], bool]:
    """Ask every primary; raises Refused."""
    # An agent that is never asked does without the client.
    client: Any = await asyncio.to_thread(import_module, "edgefast.rate_limit.redis_list")
    found, complete = await client.list_counters(store, most=_MOST, deadline=_DEADLINE)
    return [
        Count(one.key, True, one.window, one.count, one.remaining_ms) for one in found
    ], complete


def _join(
    index: LimitIndex,
    counts: Iterable[Count],
    complete: bool,
    limited: bool,
    store: str,
    table: str,
    rooms: tuple[int, int],
) -> Listing:
    """Make rows of counters: runs in a thread. `rooms`: values that a limit may begin in a window, fixed and sliding."""
    others = wanted = 0
    crowded: list[FullLimit] = []

    def rows() -> Iterator[LimitRow]:
        nonlocal others, wanted
        for count in counts:
            many = index.find_many_valued(count)
            if many is not None:
                rule, limit = many
                if count.used >= rooms[limit.sliding] and len(crowded) < _MOST:
                    crowded.append(
                        FullLimit(
                            route=rule.route,
                            rule=rule.name or str(rule.index),
                            limit=limit.name,
                            values=count.used,
                            room=rooms[limit.sliding],
                            reset=-(-count.left_ms // 1000),
                        )
                    )
                continue
            row = index.describe(count)
            if row is None:
                others += 1
            elif row.limited or not limited:
                wanted += 1
                yield row

    first = nsmallest(_MOST, rows(), key=order)
    return Listing(
        store=store,
        table=table,
        limits=len(index),
        complete=complete and wanted <= _MOST,
        others=others,
        counters=first,
        crowded=crowded,
    )
