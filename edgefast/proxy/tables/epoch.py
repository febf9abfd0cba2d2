"""Epochs: one state of all resources that workers hold, and the steps between states.

In: a worker's table and the newest table.
Out: changes, ordered so that a request never meets a reference to a missing resource
(table/shards.py). Plain values; WorkerTables decides about them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from edgefast.collections.sorted_map import SortedMap
from edgefast.proxy.control.messages import Change
from edgefast.proxy.tables.arena import Block
from edgefast.table import Shards
from edgefast.table.shards import TYPES, Key

__all__ = ["Commit", "Placed", "Refusal", "Table", "changes_between"]

#: Puts go in this order and removals in its reverse, as in table/shards.py.
_ORDER = {type_: rank for rank, type_ in enumerate(TYPES)}


class Placed(NamedTuple):
    """A resource in the arena."""

    block: Block
    version: str


class Refusal(NamedTuple):
    """A resource that a worker would not take; the version before it stays."""

    type: str
    name: str
    version: str
    error: str


class Table(NamedTuple):
    """One state of everything; epochs only grow."""

    epoch: int
    version: str
    shards: Shards | None
    placed: SortedMap[Key, Placed]
    touched: Collection[Key]  # only these may differ from the table of epoch - 1
    refused: Mapping[Key, Refusal]
    kept: Collection[Key] = ()  # not of `shards`: named by what is served in place of refused ones


class Commit(NamedTuple):
    """What takes one worker from the table it holds to `epoch`, in one swap."""

    epoch: int
    version: str
    changes: Sequence[Change]


def changes_between(
    old: Mapping[Key, Placed | None], new: Mapping[Key, Placed], keys: Iterable[Key]
) -> list[Change]:
    """List the steps from `old` to `new` over `keys`, in the order of D6."""
    puts: list[Key] = []
    removals: list[Key] = []
    for key in keys:
        if key not in new:
            if old.get(key) is not None:
                removals.append(key)
        elif old.get(key) != new[key]:
            puts.append(key)
    puts.sort(key=_place)
    removals.sort(key=_place, reverse=True)
    return [
        *(Change("put", *key, new[key].block.offset, new[key].block.length) for key in puts),
        *(Change("del", *key, 0, 0) for key in removals),
    ]


def _place(key: Key) -> tuple[int, str]:
    return (_ORDER[key[0]], key[1])
