"""WorkerTables: the table of each worker, its next update, and the memory that no worker reads.

In: published shards, acknowledgements and deaths of workers.
Out: commits (lists of changes with blocks in the arena), refusals, freed space. Level-triggered: a
worker always gets the difference between its table and the newest one, so a slow worker skips
tables instead of queueing them. Each worker has one commit in progress.
Must never: do I/O; the agent sends, this file decides.

  refusal   a worker refused a resource: the newest version that any worker has is restored, for every
            worker, so that a replacement gets the same table and the resources that this version names. The
            refused version is retried when something changes that it names, or on `retry`
  poison    two workers died while they applied a table: the last table that all had is restored
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap
from edgefast.proxy.tables.arena import Arena, ArenaFull
from edgefast.proxy.tables.epoch import Commit, Placed, Refusal, Table, changes_between
from edgefast.proxy.tables.references import members_of, named_by, unit_of
from edgefast.table import Resource, Shards, diff
from edgefast.table.shards import Key

__all__ = ["Commit", "Key", "WorkerTables", "Placed", "Refusal", "Table"]

#: Deaths of workers while they apply a table, until the table counts as the cause: two, or many with
#: another reason (killed from outside, out of descriptors or memory).
_POISON = 6
_DEATH = 3
_EXCUSED_DEATH = 1


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


_NOTHING = Table(0, "", None, EMPTY, (), {})


class WorkerTables:
    """Records which table each worker uses, and computes the next changes for it."""

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
        touched = {*((one.type, one.name) for one in delta.put), *delta.remove}
        self._take(shards, delta.put, delta.remove, self._worth_a_try(shards, touched))
        return True

    def retry(self, keys: Iterable[Key]) -> bool:
        """Try refused resources again as they are; False when there is nothing to try."""
        now = self.current
        units = {unit_of(key) for key in keys if key in now.refused}
        if now.shards is None or not units:
            return False
        try:
            self._take(now.shards, (), (), units)
        except ArenaFull:
            return False
        return True

    def _worth_a_try(self, shards: Shards, touched: Collection[Key]) -> set[Key]:
        """Return the refused units that may be taken now, since what they name has changed."""
        moved = {unit_of(key) for key in touched}
        units = set()
        for key in self.current.refused:
            resource = shards.resources.get(key)
            named = named_by(key, resource.data) if resource is not None else frozenset()
            if unit_of(key) in moved or not named.isdisjoint(touched):
                units.add(unit_of(key))
        return units

    def _take(
        self,
        shards: Shards,
        put: Iterable[Resource],
        remove: Iterable[Key],
        units: Collection[Key],
    ) -> None:
        """Start a table of `shards`: these changes, and refused units as they are meant."""
        now = self.current
        removed = set(remove)
        wanted = {(one.type, one.name): one for one in put}
        for members in members_of(units, (now.placed, shards.resources)).values():
            for key in members:
                resource, known = shards.resources.get(key), now.placed.get(key)
                if resource is None:
                    removed.add(key)
                elif known is None or known.version != resource.version:
                    wanted[key] = resource
        new: dict[Key, Placed] = {}
        try:
            for key, resource in wanted.items():
                new[key] = Placed(self.arena.put(resource.data), resource.version)
            for key in [key for key in new if key[0] == "listener" and key in now.refused]:
                self._place_hosts_again(key[1], {*new, *removed}, new)
        except ArenaFull:
            for fresh in new.values():
                self.arena.discard(fresh.block)
            raise
        placed = now.placed.edit()
        placed.update(new)
        for key in removed:
            placed.pop(key, None)
        refused = {key: one for key, one in now.refused.items() if unit_of(key) not in units}
        kept = self._keep_named(shards, refused, placed)
        for key in [one for one in now.kept if one not in kept and one not in shards.resources]:
            placed.pop(key, None)
            removed.add(key)
        self._adopt(shards.version, shards, placed.done(), refused, {*new, *removed}, kept)

    def _keep_named(
        self, shards: Shards, refused: Collection[Key], placed: Draft[Key, Placed]
    ) -> frozenset[Key]:
        """Put back into `placed` what is named by those that serve in place of refused ones."""
        kept: set[Key] = set()
        units = {unit_of(key) for key in refused}
        for members in members_of(units, (placed.done(),)).values():
            for key in [one for one in members if one in placed]:
                kept |= self._name_all(key, placed[key], placed, self.current.placed, shards)
        return frozenset(kept)

    def _name_all(
        self,
        key: Key,
        one: Placed,
        placed: Draft[Key, Placed],
        source: Mapping[Key, Placed | None],
        shards: Shards,
    ) -> set[Key]:
        """Put what `one` names into `placed` from `source`; return what is not of `shards`."""
        kept: set[Key] = set()
        for name in named_by(key, self.arena.read(one.block)):
            found = placed.get(name) or source.get(name)
            if found is not None and name not in shards.resources:
                placed[name] = found
                kept |= {name, *self._name_all(name, found, placed, source, shards)}
        return kept

    def _place_hosts_again(
        self, listener: str, touched: Collection[Key], new: dict[Key, Placed]
    ) -> None:
        """Put the virtual hosts of a listener again: a worker that refused it let go of them."""
        prefix = f"{listener}/"
        for key, old in self.current.placed.items():
            is_host = key[0] in ("virtual_host", "fragment", "stream_route") and key[1].startswith(
                prefix
            )
            if is_host and key not in touched:
                new[key] = Placed(self.arena.put(self.arena.read(old.block)), old.version)

    def _adopt(
        self,
        version: str,
        shards: Shards | None,
        placed: SortedMap[Key, Placed],
        refused: Mapping[Key, Refusal],
        touched: Collection[Key],
        kept: Collection[Key],
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
                self.arena.retire(old.block, epoch, wipe=key[0] in ("secret", "limit_store"))
        self.current = Table(epoch, version, shards, placed, touched, refused, kept)

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
        changes = changes_between(holder.view(), target.placed, keys)
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
        before = holder.view()
        events = [
            Refusal(
                type_,
                name,
                placed.version if (placed := table.placed.get((type_, name))) else "",
                error,
            )
            for type_, name, error in refused
        ]
        keys = [(one.type, one.name) for one in events]
        instead = {key: before.get(key) for key in keys}
        for members in members_of({unit_of(key) for key in keys}, (before, table.placed)).values():
            for key in members:
                if before.get(key) != table.placed.get(key):
                    instead[key] = before.get(key)
        fresh = self._refuse(worker, table, before, events)
        holder.held, holder.flight, holder.instead = table, None, instead
        self._settle()
        return fresh

    def _refuse(
        self,
        worker: int,
        table: Table,
        before: Mapping[Key, Placed | None],
        events: Sequence[Refusal],
    ) -> list[Refusal]:
        """Bring back a version before each refused one, unless the table has moved on."""
        now = self.current
        fresh = {
            key: one
            for one in events
            if (key := (one.type, one.name)) in table.placed
            and now.placed.get(key) == table.placed[key]
            and (key not in now.refused or now.refused[key].version != one.version)
        }
        if not fresh or now.shards is None:
            return []
        views = self._views()
        others = [view for number, view in views if number not in (worker, None)]
        placed = now.placed.edit()
        kept = set(now.kept)
        touched: set[Key] = set()
        units = {unit_of(key) for key in fresh}
        for unit, members in members_of(units, (now.placed, *(view for _, view in views))).items():
            bad = [key for key in members if key in fresh]
            source = _version_before(unit, bad, now.placed, [view for _, view in views])
            if source is None and any(
                all(view.get(key) == now.placed[key] for key in bad) for view in others
            ):
                continue  # nothing to go back to, and others do take it: they keep it
            for key in members:
                old = source.get(key) if source is not None else None
                if old is None:
                    placed.pop(key, None)
                else:
                    placed[key] = old
            touched |= members
            if source is not None:
                for key in [one for one in members if one in placed]:
                    kept |= self._name_all(key, placed[key], placed, source, now.shards)
        touched |= kept
        self._adopt(now.version, now.shards, placed.done(), {**now.refused, **fresh}, touched, kept)
        return list(fresh.values())

    def _views(self) -> list[tuple[int | None, Mapping[Key, Placed | None]]]:
        """List what each worker has, and what all had, newest first."""
        found = [
            (one.held.epoch, number, one.view())
            for number, one in self._holders.items()
            if one.held
        ]
        found.sort(key=lambda one: one[0], reverse=True)
        return [*((number, view) for _, number, view in found), (None, self.settled.placed)]

    def forget(self, worker: int, *, excused: bool = False) -> bool:
        """Note the death of `worker`; True when its table was poison and the last good one is back.

        `excused`: there is a reason for it that is not the table.
        """
        holder = self._holders.pop(worker, None)
        poisoned = False
        if holder is not None and holder.flight is not None:
            self._deaths[holder.flight.epoch] += _EXCUSED_DEATH if excused else _DEATH
            deadly = self._deaths[self.current.epoch] >= _POISON
            if deadly and self.current.epoch > self.settled.epoch:
                good, bad = self.settled, self.current
                touched = {**good.placed, **bad.placed}
                self._adopt(
                    good.version, good.shards, good.placed, good.refused, touched, good.kept
                )
                poisoned = True
        self._settle()
        return poisoned

    def held_by(self, worker: int) -> Table | None:
        """Return the table that `worker` has acknowledged."""
        holder = self._holders.get(worker)
        return holder.held if holder else None

    def _settle(self) -> None:
        """Move the settled table on and free what no table in use names."""
        holders = self._holders.values()
        if holders and all(one.held and one.held.epoch == self.current.epoch for one in holders):
            if not any(one.instead for one in holders):
                self._forgive()
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

    def _forgive(self) -> None:
        """Drop the refusals of what is in the table: whoever refused it is gone or takes it now."""
        now = self.current
        refused = {
            key: one
            for key, one in now.refused.items()
            if (placed := now.placed.get(key)) is None or placed.version != one.version
        }
        if len(refused) < len(now.refused):
            self.current = now._replace(refused=refused)


def _version_before(
    unit: Key,
    bad: Collection[Key],
    placed: Mapping[Key, Placed],
    views: Iterable[Mapping[Key, Placed | None]],
) -> Mapping[Key, Placed | None] | None:
    """Return the first of `views` that has the unit in another version than the refused one."""
    for view in views:
        if view.get(unit) is not None and all(view.get(key) != placed[key] for key in bad):
            return view
    return None
