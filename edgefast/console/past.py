"""Past: the last changes of a table, as what they replaced.

In: shards, one after the other. Out: the tables before and after each of the last changes. Only what was replaced is
kept, within a bound, and nothing of secrets. Must never: hold up whoever publishes a table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

from edgefast.table import Resource, Shards, diff
from edgefast.table.shards import Key

STEPS = 8
BYTES = 16 * 1024 * 1024  # of all that was replaced
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


class Past:
    """See the module's text."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque()
        self._newest: Resources = {}
        self._number = 0

    def note(self, before: Shards | None, after: Shards, now: float) -> None:
        """Note that one table took another's place."""
        self._newest = after.resources
        if before is None:  # the first: there is nothing to compare it with
            return
        delta = diff(before, after)
        keys = [*((one.type, one.name) for one in delta.put), *delta.remove]
        if not keys:
            return
        undo = {key: before.resources.get(key) for key in keys if key[0] not in _HIDDEN}
        self._number += 1
        step = Step(
            self._number,
            now,
            before.version,
            after.version,
            undo,
            tuple(sorted(key for key in keys if key[0] in _HIDDEN)),
            sum(len(one.data) for one in undo.values() if one is not None),
        )
        self._steps.append(step)
        while len(self._steps) > STEPS or sum(one.size for one in self._steps) > BYTES:
            self._steps.popleft()

    def look(self) -> History:
        """Return what is known now; it may be read in a thread."""
        return History(tuple(reversed(self._steps)), self._newest)


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
