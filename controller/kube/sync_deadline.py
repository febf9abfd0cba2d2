"""SyncDeadline: how long translation waits for objects that are required and not yet read.

In: the namespace of the objects, and whether they have been required since the start of the
controller.
Out: whether to wait. Objects required since the start have no time limit, because proxies may serve
them. For later objects, the wait ends after some seconds, counted for each namespace from the first
check that waits for it. After that, the namespace causes no wait until all of its objects are read.
A namespace that joins meanwhile has the same time, but all waiting ends at three times this
duration after the first one. Otherwise namespaces that alternate would delay the others forever.
Must never: let continuous edits or unavailable objects delay the changes of other namespaces, or
shorten the wait of others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

__all__ = ["Open", "SyncDeadline"]

#: Of what is not answered: its namespace, and whether it has been wanted since the beginning.
Open = tuple[str, bool]

#: Times patience, after which nobody is waited for any more, however late they came.
_MOST = 3


class SyncDeadline:
    """Decides how long the pipeline waits for unanswered requests; single-threaded. `end` it."""

    def __init__(self, seconds: float, on_end: Callable[[], None]) -> None:
        """`on_end` is called when there is a reason to look again."""
        self._seconds = seconds
        self._on_end = on_end
        #: Namespaces that have been waited for since there was nobody to wait for, the first one first, and what ends it.
        self._ends: dict[str, asyncio.TimerHandle] = {}
        #: Those that it ended for, until all of theirs is answered.
        self._hasty: set[str] = set()

    def waits(self, open_: Iterable[Open]) -> bool:
        """Tell whether any of these is waited for; asking begins and ends nothing."""
        return any(first or not self._is_over(owner) for owner, first in open_)

    def ask(self, open_: Iterable[Open]) -> bool:
        """Tell whether to go on; the first no because of a namespace is where patience with it begins."""
        found = list(open_)
        self._hasty &= {owner for owner, _ in found}
        later = {owner for owner, first in found if not first}
        for owner in sorted(later - self._hasty - self._ends.keys()):
            self._begin(owner)
        if all(map(self._is_over, later)):  # whose turn is over has no other one before this
            self._hasty |= later
            self.end()
        return not self.waits(found)

    def _begin(self, owner: str) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        if self._ends:
            first = next(iter(self._ends.values())).when()
            end = min(end, first + (_MOST - 1) * self._seconds)
        self._ends[owner] = loop.call_at(end, self._on_end)

    def _is_over(self, owner: str) -> bool:
        if owner in self._hasty:
            return True
        end = self._ends.get(owner)
        return end is not None and asyncio.get_running_loop().time() >= end.when()

    def end(self) -> None:
        """Wait for nothing."""
        for timer in self._ends.values():
            timer.cancel()
        self._ends.clear()
