"""Layer 4: which layer 4 route serves a (listener, hostname).

In: the outcomes of routes, and the streams of the previous translation.
Out: ir.StreamRoutes; only those with a changed part are decided again. The oldest route wins, of
equals the first by namespace/name; diagnostics/unreachable_layer4.py reports the losers. A route
keeps its own hostnames: the longest hostname that covers a server name wins, so a newer exact one
precedes an older wildcard.
Source: Gateway API TLSRouteSpec.hostnames; guides/api-design, conflicts.
Must never: give a hostname to another route while its winner has a mistake, or depend on the order
in which routes came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from edgefast import ir
from edgefast.api.model.route_name import RouteKey
from edgefast.collections.sorted_map import EMPTY, SortedMap
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.route.outcome import RouteOutcome, StreamPart
from edgefast.translate.virtual_host.virtual_host import BackendPolicy, Place

__all__ = ["StreamOutcome", "Streams", "translate_streams"]


class StreamOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One place; the first part has it."""

    route: ir.StreamRoute
    parts: tuple[StreamPart, ...]  # the oldest first

    @property
    def clusters(self) -> tuple[ClusterRef, ...]:
        """Those that it sends to."""
        return self.parts[0].clusters

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the policy units that its connections meet."""
        return (*self.route.policies, *self.route.traffic)

    @property
    def backend_policies(self) -> tuple[BackendPolicy, ...]:
        """How policies of traffic treat its clusters, each once."""
        if not self.route.traffic:
            return ()
        names = dict.fromkeys(one.cluster for one in self.route.backends if one.cluster)
        return tuple((one, self.route.ceilings, self.route.traffic) for one in names)


class Streams(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """All places."""

    outcomes: SortedMap[Place, StreamOutcome] = EMPTY
    touched: frozenset[Place] = frozenset()  # that differ from the translation before
    suspects: frozenset[RouteKey] = frozenset()  # routes of places that have another one now
    made: int = 0


def translate_streams(
    changed: Iterable[tuple[RouteOutcome | None, RouteOutcome | None]], previous: Streams
) -> Streams:
    """Apply (old, new) pairs of route outcomes to the places; None means absent."""
    touched: dict[Place, dict[RouteKey, StreamPart]] = {}
    for old, new in changed:
        before = old.streams if old is not None else ()
        after = new.streams if new is not None else ()
        if before == after == ():
            continue
        for comes, places in ((False, before), (True, after)):
            for listener, hostname, part in places:
                here = _touch(touched, previous, (listener, hostname))
                if comes:
                    here[part.key] = part
                else:
                    here.pop(part.key, None)
    if not touched:
        quiet = not previous.touched and not previous.suspects
        return previous if quiet else Streams(outcomes=previous.outcomes)
    outcomes = previous.outcomes.edit()
    suspects: set[RouteKey] = set()
    differing: set[Place] = set()
    for place, parts in touched.items():
        old_one = outcomes.get(place)
        new_one = _settle(place, parts, old_one)
        suspects.update(part.key for one in (old_one, new_one) if one for part in one.parts)
        if new_one is None:
            outcomes.pop(place, None)
        else:
            outcomes[place] = new_one
        if new_one is not old_one:
            differing.add(place)
    return Streams(
        outcomes=outcomes.done(),
        touched=frozenset(differing),
        suspects=frozenset(suspects),
        made=len(touched),
    )


def _touch(
    touched: dict[Place, dict[RouteKey, StreamPart]], previous: Streams, place: Place
) -> dict[RouteKey, StreamPart]:
    if place not in touched:
        known = previous.outcomes.get(place)
        touched[place] = {one.key: one for one in known.parts} if known else {}
    return touched[place]


def _settle(
    place: Place, parts: Mapping[RouteKey, StreamPart], old: StreamOutcome | None
) -> StreamOutcome | None:
    if not parts:
        return None
    ordered = tuple(sorted(parts.values(), key=lambda one: (one.age, one.key)))
    route = msgspec.structs.replace(ordered[0].route, listener=place[0], hostname=place[1])
    if old is not None and old.route == route:
        route = old.route
        if old.parts == ordered:
            return old
    return StreamOutcome(route=route, parts=ordered)
