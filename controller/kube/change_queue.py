"""ChangeQueue: changes that wait for a slice of CPU time, in an order that respects their dependencies.

In: changes by name, with their cost and the namespaces that they refer to.
Out: batches to apply at once, round-robin over lanes. A lane is a queue of stages, for namespaces
with changes that depend on each other. A stage of routes is applied one costly route after another.
A stage of other objects (policies, Gateways, grants) is applied at once, after all stages before
it. A route that changes again before a later stage exists replaces its waiting version. A lane with
more than STAGES stages becomes one stage.
Must never: apply a change before an earlier one that it depends on, or serve a lane twice while
another one waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import msgspec

from edgefast.api.kinds import KINDS, Object

__all__ = ["STAGES", "ChangeQueue"]

_Name = tuple[str, str, str]  # kind, namespace, name
_ROUTES = frozenset(info.kind for info in KINDS.values() if info.kind.endswith("Route"))
#: Stages of a lane. Each repeats at most all objects of its namespaces, so this bounds memory.
STAGES = 64


class _Stage(msgspec.Struct, eq=False):
    number: int  # grows with each stage
    routes: bool  # False: all entries are applied at once
    entries: dict[_Name, tuple[Object | None, int]]  # the new version (None: deleted), its cost


class _Lane:
    def __init__(self) -> None:
        self.stages: list[_Stage] = []
        self.writes: set[str] = set()  # namespaces of the changes
        self.reads: set[str] = set()  # namespaces that the changes refer to


class ChangeQueue:
    """A queue of changes that keeps the order of those that depend on each other."""

    def __init__(self) -> None:
        #: The newest version of each object that waits; None: its deletion waits.
        self.waiting: dict[_Name, Object | None] = {}
        self._versions: Counter[_Name] = Counter()  # that wait
        self._lanes: dict[_Lane, None] = {}  # the next one first
        self._writer: dict[str, _Lane] = {}
        self._readers: dict[str, set[_Lane]] = {}
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def __len__(self) -> int:
        """Return the number of waiting route versions with a cost."""
        stages = (stage for lane in self._lanes for stage in lane.stages)
        return sum(cost > 0 for stage in stages for _, cost in stage.entries.values())

    def blocks(self, name: _Name, refers: Collection[str]) -> bool:
        """Tell whether a change depends on a waiting one; `refers`: namespaces that the object refers to."""
        return name in self.waiting or bool(self._find_lanes(_home(name), refers))

    def put(self, name: _Name, obj: Object | None, cost: int, refers: Collection[str]) -> None:
        """Queue a change (None: a deletion) after all changes that it depends on."""
        home = _home(name)
        lane = self._merge(self._find_lanes(home, refers))
        self._note(lane, {home}, set(refers))
        routes = name[0] in _ROUTES
        if not lane.stages or lane.stages[-1].routes != routes:
            self._number += 1
            lane.stages.append(_Stage(self._number, routes, {}))
        entries = lane.stages[-1].entries
        self._versions[name] += name not in entries
        entries[name] = (obj, cost)
        self.waiting[name] = obj
        if len(lane.stages) > STAGES:
            self._join_stages(lane)

    def next(self) -> tuple[dict[_Name, Object | None], int]:
        """Take the next changes, to be applied at once, and their cost: one costly change at most, with the free ones around it. KeyError: nothing waits."""
        lane = next(iter(self._lanes), None)
        if lane is None:
            raise KeyError("nothing waits")
        taken: dict[_Name, Object | None] = {}
        spent = 0
        while lane.stages:
            stage = lane.stages[0]
            chosen = list(stage.entries)[:1] if stage.routes else list(stage.entries)
            cost = sum(stage.entries[name][1] for name in chosen)
            if cost and spent:
                break
            spent += cost
            for name in chosen:
                taken[name] = stage.entries.pop(name)[0]
                self._leave(name)
            if not stage.entries:
                del lane.stages[0]
        del self._lanes[lane]
        if lane.stages:
            self._lanes[lane] = None  # the last one of all
        else:
            self._remove(lane)
        return taken, spent

    # --- inside ---------------------------------------------------------------------------------

    def _find_lanes(self, home: str, refers: Collection[str]) -> list[_Lane]:
        """Return the lanes with changes that one of this namespace depends on, in the order of their turns."""
        if not home:
            return list(self._lanes)  # a cluster-scoped object counts everywhere
        found = set(self._readers.get(home, ()))
        for namespace in ("", home, *refers):
            if namespace in self._writer:
                found.add(self._writer[namespace])
        return [lane for lane in self._lanes if lane in found] if found else []

    def _merge(self, lanes: list[_Lane]) -> _Lane:
        """Return one lane for all; changes of different lanes do not depend on each other."""
        if not lanes:
            lane = _Lane()
            self._lanes[lane] = None
            return lane
        first, *others = lanes
        for other in others:
            del self._lanes[other]
            self._remove(other)
            first.stages += other.stages
            self._note(first, other.writes, other.reads)
        first.stages.sort(key=lambda stage: stage.number)
        return first

    def _note(self, lane: _Lane, writes: set[str], reads: set[str]) -> None:
        lane.writes |= writes
        lane.reads |= reads
        self._writer.update(dict.fromkeys(writes, lane))
        for namespace in reads:
            self._readers.setdefault(namespace, set()).add(lane)

    def _remove(self, lane: _Lane) -> None:
        for namespace in lane.writes:
            del self._writer[namespace]
        for namespace in lane.reads:
            readers = self._readers[namespace]
            readers.discard(lane)
            if not readers:
                del self._readers[namespace]

    def _join_stages(self, lane: _Lane) -> None:
        """Merge all stages into one: the newest versions, applied at once, need no intermediate versions."""
        first, *later = lane.stages
        for stage in later:
            for name, entry in stage.entries.items():
                self._versions[name] -= name in first.entries
                first.entries[name] = entry
        first.routes = False
        lane.stages = [first]

    def _leave(self, name: _Name) -> None:
        self._versions[name] -= 1
        if not self._versions[name]:
            del self._versions[name], self.waiting[name]


def _home(name: _Name) -> str:
    """Return the namespace that a change counts in: a Namespace counts in itself, other cluster-scoped objects in ""."""
    kind, namespace, own = name
    return own if kind == "Namespace" else namespace
