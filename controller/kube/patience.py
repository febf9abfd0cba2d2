"""Patience: how long everything waits for what is wanted and has not been answered.

In: whose it is, and whether it has been wanted since the controller began. Out: whether to wait. What is wanted since the beginning is waited
for without end: there may be proxies that serve it. Of what comes later waiting ends after some seconds, which begin with the first
look that has to wait; then the namespaces that were waited for are waited for no more until all of theirs is answered.
Must never: let one who edits without pause, or what cannot be had, hold up the changes of others, or make them impatient.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

__all__ = ["Open", "Patience"]

#: Of what is not answered: its namespace, and whether it has been wanted since the beginning.
Open = tuple[str, bool]


class Patience:
    """See the module's text; single-threaded. `end` it."""

    def __init__(self, seconds: float, on_end: Callable[[], None]) -> None:
        """`on_end` is called when there is a reason to look again."""
        self._seconds = seconds
        self._on_end = on_end
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0  # when it ends; 0: nothing is waited for with it
        #: Namespaces that it ended for, until all of theirs is answered.
        self._hasty: set[str] = set()

    def waits(self, open_: Iterable[Open]) -> bool:
        """Tell whether any of these is waited for; asking begins and ends nothing."""
        over = self._until and asyncio.get_running_loop().time() >= self._until
        return any(first or (not over and whose not in self._hasty) for whose, first in open_)

    def ask(self, open_: Iterable[Open]) -> bool:
        """Tell whether to go on; the first no since a yes is where patience begins."""
        found = list(open_)
        self._hasty &= {whose for whose, _ in found}
        waiting = {whose for whose, first in found if not first} - self._hasty
        if waiting and not self._until:
            loop = asyncio.get_running_loop()
            self._until = loop.time() + self._seconds
            self._timer = loop.call_at(self._until, self._on_end)
        if self.waits(found):
            return False
        self._hasty |= waiting
        self.end()
        return True

    def end(self) -> None:
        """Wait for nothing."""
        self._until = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
