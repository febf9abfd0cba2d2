"""Parentless routes: routes with a missing Gateway, for Events of the route.

In: outcomes. Out: (route, text) of parentRefs that are missing for SETTLED seconds, each again after an hour. No controller
writes a status for such a parent. A Gateway in a namespace that is not watched is not missing.
Must never: report a Gateway that is created shortly after its route, or search all routes in the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from operator import is_

from controller.events import AGAIN
from controller.pipeline import Outcome
from edgefast.api.gateway.layer4_route import AnyRoute
from edgefast.api.kinds import ref_of
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import ObjectRef, Problem

__all__ = ["MOST", "SETTLED", "ParentlessRoutes", "find_parentless"]

#: Seconds that a Gateway must be missing.
SETTLED = 10.0
#: Routes that are reported at once, in the order of their names; `edgefast status` lists all.
MOST = 20


class ParentlessRoutes:
    """Finds routes with a missing Gateway, and when to report each."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_at: Outcome | None = None
        self._read: tuple[object, ...] = ()  # what the last search read
        self._due: dict[tuple[ObjectRef, Problem], float] = {}

    async def look(self, outcome: Outcome) -> list[tuple[ObjectRef, Problem]]:
        """Return the problems to report now."""
        if outcome is not self._looked_at:
            read = _list_read(outcome)
            # Most outcomes differ in endpoints alone: the routes need no search then.
            if len(read) != len(self._read) or not all(map(is_, read, self._read)):
                found = await asyncio.to_thread(lambda: list(find_parentless(outcome)))
                first = self._clock() + SETTLED
                self._due = {one: self._due.get(one, first) for one in found}
            self._looked_at, self._read = outcome, read
        now = self._clock()
        due = [one for one, at in self._due.items() if at <= now]
        self._due.update(dict.fromkeys(due, now + AGAIN))
        return due


def _list_read(outcome: Outcome) -> tuple[object, ...]:
    """Return all that `find_parentless` reads; compared by identity."""
    world = outcome.translation.memo.world
    snapshot, settings = world.snapshot, world.settings
    return (
        *snapshot.routes,
        snapshot.gateways,
        snapshot.namespaces,
        snapshot.refused,
        outcome.translation.memo.front,
        settings.watch_namespaces,
        settings.watch_selector,
    )


def find_parentless(outcome: Outcome) -> Iterator[tuple[ObjectRef, Problem]]:
    """Yield at most MOST problems of routes of watched namespaces."""
    world = outcome.translation.memo.world
    snapshot = world.snapshot
    found = 0
    for table in snapshot.routes:
        for route in table.values():
            for problem in _check(route, outcome):
                yield ref_of(route), problem
                found += 1
                if found == MOST:
                    return


def _check(route: AnyRoute, outcome: Outcome) -> Iterator[Problem]:
    world, home = outcome.translation.memo.world, route.metadata.namespace
    for at, ref in enumerate(route.spec.parent_refs):
        key = (ref.namespace or home, ref.name)
        if (ref.group, ref.kind) != (GATEWAY_GROUP, "Gateway") or key in world.gateways:
            continue
        if key in world.snapshot.gateways or ("Gateway", *key) in world.snapshot.refused:
            continue
        if not all(_is_watched(namespace, outcome) for namespace in (home, key[0])):
            continue
        message = f"Gateway {key[0]}/{key[1]} not found; no request reaches the route through it"
        hint = "create the Gateway, or correct the reference"
        path = f"spec.parentRefs[{at}]"
        yield Problem(ref_of(route), path, "NotFound", message, hint, severity="warning")


def _is_watched(namespace: str, outcome: Outcome) -> bool:
    world = outcome.translation.memo.world
    found = world.snapshot.namespaces.get(("", namespace))
    return world.settings.watches(namespace, found.metadata.labels if found else {})
