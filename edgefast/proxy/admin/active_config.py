"""Active configuration: what an agent's workers serve now, for /explain and the console.

In: the agent and its list of counters.
Out: the applied resources, and the present reports of workers and store.
Must never: return secrets that workers keep because they refused newer ones; the data is only for
explanations.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from edgefast.proxy.admin.limit_list import LimitList, Unread
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.agent.worker_slot import WorkerSlot
from edgefast.proxy.control.channel import ChannelClosed, ChannelError
from edgefast.table import Resource
from edgefast.table.shards import Key

if TYPE_CHECKING:
    from edgefast.explain import Live

__all__ = ["read_now", "read_resources"]

_HIDDEN = ("secret", "limit_store")
_numbers = itertools.count(1_000_000_000)  # of dumps: apart from those of /dump


def read_resources(agent: Agent) -> Mapping[Key, Resource]:
    """Return the applied table: where a worker refused a resource, with the one in its place."""
    table = agent.ledger.current
    if table.shards is None:  # before the first
        return {}
    guess = table.shards.resources
    if not table.refused and not table.kept:
        return guess
    found: dict[Key, Resource] = {}
    for key, placed in table.placed.items():
        one = guess.get(key)
        if one is None or one.version != placed.version:
            if key[0] in _HIDDEN:
                continue
            one = Resource(*key, placed.version, agent.arena.read(placed.block))
        found[key] = one
    return found


async def read_now(agent: Agent, limits: LimitList) -> Live:
    """Ask the workers for their endpoints, and the store for its counters."""
    reported = await asyncio.gather(*(_ask(slot) for slot in agent.slots))
    listed = await _list(agent, limits)
    live = await asyncio.to_thread(_read_live, reported, listed)
    uncounted = tuple(one.text() for one in agent.uncounted.problems())
    return msgspec.structs.replace(live, uncounted=uncounted)


def _read_live(told: Sequence[Mapping[str, Any]], listed: Mapping[str, Any] | str) -> Live:
    from edgefast.explain.dump import read_live  # not before the first explanation: it takes 50 ms

    return read_live({"workers": told}, listed)


async def _list(agent: Agent, limits: LimitList) -> Mapping[str, Any] | str:
    if ("limit_store", "store") not in agent.ledger.current.placed:
        return {"counters": [], "complete": True}
    try:
        listing = await limits.read()
    except Unread as error:
        return str(error)
    listed: Mapping[str, Any] = await asyncio.to_thread(msgspec.to_builtins, listing)
    return listed


async def _ask(slot: WorkerSlot) -> dict[str, Any]:
    try:
        return {"engine": await slot.dump(next(_numbers))}
    except (ChannelClosed, ChannelError, TimeoutError):
        return {}
