"""Change history: the last changes of a table, stored as the replaced resources.

In: successive shards.
Out: the tables before and after each of the last changes. The history keeps only replaced
resources, within a bound that all tables of a process share, and no secrets.
Must never: delay the publisher of a table.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Mapping

import msgspec

from edgefast.table import Resource, Shards, diff
from edgefast.table.shards import Key

STEPS = 8
BYTES = 16 * 1024 * 1024  # of all that was replaced, in all tables together
_KEY = 128  # bytes that a resource takes besides its content, about
_HIDDEN = frozenset(("secret", "limit_store"))


class Step(msgspec.Struct, frozen=True):
    """One change."""

    number: int
    at: float  # Unix seconds
    before: str  # versions
    after: str
    undo: Mapping[Key, Resource | None]  # what was there; None: nothing
    hidden: tuple[Key, ...]  # that changed too, and whose content is nobody's business
    size: int  # bytes


Resources = Mapping[Key, Resource]


class ChangeRecord:
    """Keeps the last changes of a table, with what they replaced."""

    def __init__(self, room: HistoryBudget | None = None) -> None:
        """Several change records may share a `room`, the memory budget."""
        self._room = room or HistoryBudget()
        self._steps: deque[Step] = deque()
        self._newest: Resources = {}

    def note(self, before: Shards | None, after: Shards, now: float) -> None:
        """Note that one table took another's place."""
        self._newest = after.resources
        if before is None:  # the first, or the first again: nothing led to it
            self.clear()
            return
        delta = diff(before, after)
        keys = [*((one.type, one.name) for one in delta.put), *delta.remove]
        if not keys:
            return
        undo = {key: before.resources.get(key) for key in keys if key[0] not in _HIDDEN}
        step = Step(
            next(self._room.numbers),
            now,
            before.version,
            after.version,
            undo,
            tuple(sorted(key for key in keys if key[0] in _HIDDEN)),
            sum(len(one.data) for one in undo.values() if one is not None) + _KEY * len(keys),
        )
        if step.size > BYTES:  # what came before it cannot be gone back to without it
            self.clear()
            return
        self._steps.append(step)
        self._room.enter(self, step)
        if len(self._steps) > STEPS:
            self.drop()

    def drop(self) -> None:
        """Forget the oldest step."""
        self._room.leave(self._steps.popleft())

    def clear(self) -> None:
        """Forget all steps."""
        while self._steps:
            self.drop()

    def look(self) -> History:
        """Return what is known now; it may be read in a thread."""
        return History(tuple(reversed(self._steps)), self._newest)


class HistoryBudget:
    """`BYTES` for the steps of some pasts: where they are too many, the oldest of all goes."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)  # of steps: none is used again when a table comes back
        self.taken = 0  # bytes
        self._owners: OrderedDict[int, ChangeRecord] = OrderedDict()  # by number, the oldest first

    def enter(self, past: ChangeRecord, step: Step) -> None:
        """Take in a past's newest step."""
        self._owners[step.number] = past
        self.taken += step.size
        while self.taken > BYTES:
            next(iter(self._owners.values())).drop()

    def leave(self, step: Step) -> None:
        """Let go of a step."""
        del self._owners[step.number]
        self.taken -= step.size


class History(msgspec.Struct, frozen=True):
    """Steps, the newest first, and the table that the newest led to."""

    steps: tuple[Step, ...]
    newest: Resources

    def rewind(self, number: int) -> tuple[Step, Resources, Resources] | None:
        """Return a step, and all resources before and after it; None when it is not known any more."""
        resources = dict(self.newest)
        for step in self.steps:
            after = resources.copy() if step.number == number else resources
            for key, one in step.undo.items():
                if one is None:
                    resources.pop(key, None)
                else:
                    resources[key] = one
            if step.number == number:
                return step, resources, after
        return None
