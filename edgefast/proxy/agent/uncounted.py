"""What is not counted though a limit asks for it: stores that do not serve, limits without room for further values.

In: what workers tell of their stores. Out: problems, as long as they last, and one line in the log when a limit runs out of room and
one when it has some again. Must never: name a value that a client sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator

from edgefast.problem import ObjectRef, Problem
from edgefast.proxy.agent.workerslot import WorkerSlot

__all__ = ["Uncounted"]

log = logging.getLogger(__name__)

#: Seconds that a limit may go without being short of room before that is over: windows of a second follow each other.
_GRACE = 5.0
_MOST = 100  # limits that are told by name


class Uncounted:
    """See the module's text."""

    def __init__(
        self, slots: Callable[[], Iterable[WorkerSlot]], changed: Callable[[], None]
    ) -> None:
        self._slots = slots
        self._changed = changed
        self._down: list[tuple[str, str]] = []  # told before
        self._crowded: dict[tuple[str, str], float] = {}  # (limit, route): until when

    def note(self, crowded: Iterable[tuple[str, str, int]]) -> None:
        """A worker has told something: `crowded` is (route, limit, milliseconds) of limits whose room is used up so long."""
        loop = asyncio.get_running_loop()
        down = self._find_down()
        if down != self._down:
            self._down = down
            self._changed()
        for route, limit, left in crowded:
            until = loop.time() + left / 1000 + _GRACE
            if (limit, route) in self._crowded:
                self._crowded[limit, route] = max(until, self._crowded[limit, route])
                continue
            if len(self._crowded) >= _MOST:
                continue
            self._crowded[limit, route] = until
            log.warning("rate limits: %s of %s: %s", limit, route, _NO_ROOM)
            loop.call_at(until, self._look, limit, route)
            self._changed()

    def _look(self, limit: str, route: str) -> None:
        loop = asyncio.get_running_loop()
        until = self._crowded[limit, route]
        if until > loop.time():
            loop.call_at(until, self._look, limit, route)
            return
        del self._crowded[limit, route]
        log.warning("rate limits: %s of %s has room for its values again", limit, route)
        self._changed()

    def _find_down(self) -> list[tuple[str, str]]:
        """Return places of counters that do not serve some worker, and why; once, whatever it says to each of them."""
        return sorted(
            {
                place: (place, why) for one in self._slots() for place, why in one.stores_down
            }.values()
        )

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong now."""
        config = ObjectRef("EdgeGateway", "", "")
        for place, reason in self._find_down():
            said = f"the store {place} does not count: {reason}; limited requests are answered by rateLimit.failClosed"
            yield Problem(config, "rateLimit.backend", "NotCounted", said)
        for limit, route in sorted(self._crowded):
            name, _, number = limit.partition("#")
            namespace, _, name = name.rpartition("/")
            path = f"spec.global.rules[{number}]"
            said = f"{_NO_ROOM} (HTTPRoute {route})"
            yield Problem(ObjectRef("RateLimitFilter", namespace, name), path, "NotCounted", said)


_NO_ROOM = "more values than it has room for in one window: further new values are not counted until it ends"
