"""Limit warnings: rate limits that are not counted: stores that fail or may evict counters, and limits without space for new values.

In: the workers' reports about their stores.
Out: the problems of all workers together, as long as they last. The receiver of problems logs each
one once, when it appears. One line when such a problem ends.
Must never: name a value that a client sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from edgefast.api.model.route_name import ref_of_name
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.proxy.agent.worker_slot import WorkerSlot
from edgefast.proxy.control import messages

__all__ = ["LimitWarnings"]

log = logging.getLogger(__name__)

#: Seconds that a limit may go without being short of room before that is over: windows of a second follow each other.
_GRACE = 5.0
_MOST = 100  # limits that are told by name
_CONFIG = ObjectRef("EdgeGateway", "", "")
_STORE = "rateLimit.backend"


class LimitWarnings:
    """Reports rate limits that are not counted, from what the workers observe of their stores."""

    def __init__(
        self, slots: Callable[[], Iterable[WorkerSlot]], changed: Callable[[], None]
    ) -> None:
        self._slots = slots
        self._changed = changed
        self._down: dict[str, str] = {}  # places that do not serve some worker, and why
        self._over: dict[str, str] = {}  # what some worker said became of one of them
        self._evicting: dict[str, str] = {}  # places that may forget counters, and by which policy
        self._policy = ""  # what becomes of requests meanwhile
        self._crowded: dict[tuple[str, str], float] = {}  # (limit, route): until when

    def note(self, told: messages.Uncounted) -> None:
        """A worker has told something; its slot knows how its places stand."""
        self._policy = "get 500" if told.fail_closed else "pass"
        if told.standing is not None:
            self._compare(dict(told.standing.over))
        loop = asyncio.get_running_loop()
        for route, limit, left in told.crowded:
            until = loop.time() + left / 1000 + _GRACE
            if (limit, route) in self._crowded:
                self._crowded[limit, route] = max(until, self._crowded[limit, route])
                continue
            if len(self._crowded) >= _MOST:
                continue
            self._crowded[limit, route] = until
            loop.call_at(until, self._look, limit, route)
            self._changed()

    def _compare(self, over: dict[str, str]) -> None:
        """Tell what is new of the places of counters; `over`: what became of some that were down."""
        standings = [one.standing for one in self._slots()]
        # Whatever a place says to each worker, and later, one reason is told.
        down = {place: why for one in standings for place, why in one.down}
        down = {place: self._down.get(place, why) for place, why in down.items()}
        evicting = {place: policy for one in standings for place, policy in one.evicting}
        self._over |= over
        for place in self._down.keys() - down.keys():
            # A worker that found it well at its start has no word for that.
            log.warning("rate limits: %s %s", place, self._over.get(place, "works again"))
        self._over = {place: how for place, how in self._over.items() if place in down}
        for place in self._evicting.keys() - evicting.keys():
            log.warning("rate limits: %s does not evict counters any more", place)
        if (down, evicting) != (self._down, self._evicting):
            self._down, self._evicting = down, evicting
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

    def count_stores(self) -> Counter[tuple[str, str]]:
        """Return how many workers have a trouble with a place of counters: (place, "down" or the policy)."""
        found: Counter[tuple[str, str]] = Counter()
        for one in self._slots():
            found.update((place, "down") for place, _ in one.standing.down)
            found.update(one.standing.evicting)
        return found

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong now."""
        for place, reason in sorted(self._down.items()):
            message = f"the store {place} does not count: {reason}; limited requests {self._policy}"
            yield Problem(_CONFIG, _STORE, "NotCounted", message)
        for place, policy in sorted(self._evicting.items()):
            message = f"the store {place} has maxmemory-policy {policy}: {_FORGETS}"
            yield Problem(
                _CONFIG, _STORE, "EvictingStore", message, hint=_NO_EVICTION, severity="warning"
            )
        for limit, route in sorted(self._crowded):
            name, _, number = limit.partition("#")
            namespace, _, name = name.rpartition("/")
            path = f"spec.global.rules[{number}]"
            message = f"{_NO_ROOM} ({ref_of_name(route)})"
            yield Problem(
                ObjectRef("RateLimitFilter", namespace, name), path, "NotCounted", message
            )


_NO_ROOM = "one window has more values than the limit has room for; new values are not counted until the window ends"
_FORGETS = "it can delete counters when its memory is full, and limits then admit more requests"
_NO_EVICTION = "set noeviction, and use a separate Redis for limits"
