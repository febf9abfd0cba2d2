"""Ledger: which table every worker holds, what to send it next, and which memory nobody reads.

In: published shards, acknowledgements and deaths of workers. Out: commits (lists of changes with
places in the arena), refusals, freed space. Level-triggered: a worker always gets the difference
between the table it holds and the newest one, so a slow worker skips tables instead of queueing
them. One commit is under way per worker. Must never do I/O: agent.py sends, this file decides.

  refusal   a worker refused a resource: the version before it comes back, for every worker, so that
            a successor gets the same table; the refused version is not tried again
  poison    two workers died while they took in a table: the last table that all had comes back
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from edgefast.proxy.arena import Arena, ArenaFull, Block
from edgefast.proxy.messages import Change
from edgefast.table import Shards, diff
from edgefast.table.shards import TYPES, Key

__all__ = ["Commit", "Key", "Ledger", "Placed", "Refusal", "Table"]

#: Puts go in this order and removals in its reverse, as in table/shards.py.
_ORDER = {type_: rank for rank, type_ in enumerate(TYPES)}
_POISON_DEATHS = 2


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
    placed: Mapping[Key, Placed]
    touched: Collection[Key]  # only these may differ from the table of epoch - 1
    refused: Mapping[Key, Refusal]


class Commit(NamedTuple):
    """What takes one worker from the table it holds to `epoch`, in one swap."""

    epoch: int
    version: str
    changes: Sequence[Change]


class _Holder:
    def __init__(self) -> None:
        self.held: Table | None = None
        self.flight: Table | None = None
        # What this worker has instead of what its table says, because it refused that; None: nothing.
        self.instead: dict[Key, Placed | None] = {}

    def view(self) -> Mapping[Key, Placed | None]:
        """Return what the worker really has."""
        if self.held is None:
            return {}
        return {**self.held.placed, **self.instead} if self.instead else self.held.placed


_NOTHING = Table(0, "", None, {}, (), {})


class Ledger:
    """See the module's text."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.current = _NOTHING
        self.settled = _NOTHING  # the newest table that all workers have acknowledged
        self._holders: dict[int, _Holder] = {}
        self._deaths: Counter[int] = Counter()

    # --- tables ---------------------------------------------------------------------------------

    def advance(self, shards: Shards) -> bool:
        """Make `shards` the newest table; False when nothing differs. Raises ArenaFull, unchanged."""
        now = self.current
        delta = diff(now.shards, shards)
        if now.shards is not None and not delta.put and not delta.remove:
            return False
        new: dict[Key, Placed] = {}
        try:
            for resource in delta.put:
                block = self.arena.put(resource.data)
                new[resource.type, resource.name] = Placed(block, resource.version)
            for key in [key for key in new if key[0] == "listener" and key in now.refused]:
                self._place_hosts_again(key[1], {*new, *delta.remove}, new)
        except ArenaFull:
            for fresh in new.values():
                self.arena.discard(fresh.block)
            raise
        placed = {**now.placed, **new}
        for key in delta.remove:
            placed.pop(key, None)
        touched = {*new, *delta.remove}
        refused = {key: one for key, one in now.refused.items() if key not in touched}
        self._adopt(shards.version, shards, placed, refused, touched)
        return True

    def _place_hosts_again(
        self, listener: str, touched: Collection[Key], new: dict[Key, Placed]
    ) -> None:
        """Put the virtual hosts of a listener again: a worker that refused it let go of them."""
        prefix = f"{listener}/"
        for key, old in self.current.placed.items():
            is_host = key[0] in ("virtual_host", "fragment") and key[1].startswith(prefix)
            if is_host and key not in touched:
                new[key] = Placed(self.arena.put(self.arena.read(old.block)), old.version)

    def _adopt(
        self,
        version: str,
        shards: Shards | None,
        placed: Mapping[Key, Placed],
        refused: Mapping[Key, Refusal],
        touched: Collection[Key],
    ) -> None:
        """Start a new epoch; only `touched` keys may differ from the table before."""
        before = self.current
        epoch = before.epoch + 1
        for key in touched:
            old, new = before.placed.get(key), placed.get(key)
            if old == new:
                continue
            if new is not None:
                self.arena.restore(new.block)
            if old is not None:
                self.arena.retire(old.block, epoch, wipe=key[0] == "secret")
        self.current = Table(epoch, version, shards, placed, touched, refused)

    # --- workers --------------------------------------------------------------------------------

    def commit_for(self, worker: int) -> Commit | None:
        """Begin what `worker` lacks; None while a commit is under way or nothing is missing."""
        holder = self._holders.setdefault(worker, _Holder())
        if holder.flight is not None or self.current.epoch == 0:
            return None
        held, target = holder.held, self.current
        if held is not None and held.epoch == target.epoch:
            return None
        if held is None:
            keys: Collection[Key] = target.placed
        elif held.epoch + 1 == target.epoch:
            keys = {*target.touched, *holder.instead}
        else:
            keys = {**held.placed, **target.placed, **holder.instead}
        changes = _changes(holder.view(), target.placed, keys)
        holder.flight = target
        return Commit(target.epoch, target.version, changes)

    def on_ack(
        self, worker: int, epoch: int, refused: Sequence[tuple[str, str, str]]
    ) -> list[Refusal]:
        """Note that `worker` swapped to `epoch`; return what it is the first to refuse."""
        holder = self._holders[worker]
        table = holder.flight
        if table is None or table.epoch != epoch:
            raise ValueError(f"worker {worker} acknowledged epoch {epoch}, which it was not sent")
        news = []
        instead: dict[Key, Placed | None] = {}
        before = holder.view()
        for type_, name, error in refused:
            key = (type_, name)
            placed = table.placed.get(key)
            instead[key] = before.get(key)
            news.append(Refusal(type_, name, placed.version if placed else "", error))
        fresh = self._refuse(table, before, news)
        holder.held, holder.flight, holder.instead = table, None, instead
        self._settle()
        return fresh

    def _refuse(
        self, table: Table, before: Mapping[Key, Placed | None], news: Sequence[Refusal]
    ) -> list[Refusal]:
        """Bring back the version before each refused one, unless the table has moved on."""
        now = self.current
        fresh = [
            one
            for one in news
            if (key := (one.type, one.name)) in table.placed
            and now.placed.get(key) == table.placed[key]
        ]
        if not fresh:
            return []
        placed = dict(now.placed)
        refused = dict(now.refused)
        touched = []
        for one in fresh:
            key = (one.type, one.name)
            old = before.get(key)
            touched.append(key)
            refused.setdefault(key, one)
            if old is None or old == placed[key]:
                del placed[key]  # never had one, or even that one is refused now
            else:
                placed[key] = old
        self._adopt(now.version, now.shards, placed, refused, touched)
        return fresh

    def forget(self, worker: int) -> bool:
        """Note the death of `worker`; True when its table was poison and the last good one is back."""
        holder = self._holders.pop(worker, None)
        poisoned = False
        if holder is not None and holder.flight is not None:
            self._deaths[holder.flight.epoch] += 1
            deadly = self._deaths[self.current.epoch] >= _POISON_DEATHS
            if deadly and self.current.epoch > self.settled.epoch:
                good, bad = self.settled, self.current
                touched = {**good.placed, **bad.placed}
                self._adopt(good.version, good.shards, good.placed, good.refused, touched)
                poisoned = True
        self._settle()
        return poisoned

    def held_by(self, worker: int) -> Table | None:
        """Return the table that `worker` has acknowledged."""
        holder = self._holders.get(worker)
        return holder.held if holder else None

    def behind(self, epoch: int) -> list[int]:
        """List the live workers that have not acknowledged `epoch` or a later one."""
        return [
            worker
            for worker, holder in self._holders.items()
            if holder.held is None or holder.held.epoch < epoch
        ]

    def _settle(self) -> None:
        """Move the settled table on and free what no table in use names."""
        holders = self._holders.values()
        if holders and all(one.held and one.held.epoch == self.current.epoch for one in holders):
            self.settled = self.current
            self._deaths.clear()
        floor = self.settled.epoch
        for one in holders:
            table = one.held or one.flight
            if table is not None:
                floor = min(floor, table.epoch)
        pinned = {
            placed.block.offset for one in holders for placed in one.instead.values() if placed
        }
        self.arena.reclaim(floor, pinned)


def _changes(
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
