"""Virtual host: the parts of all routes on one (listener, hostname), in order of precedence.

In: the outcomes of routes, and the hosts of the previous translation. Out: ir.VirtualHosts; only
those with a changed part are rebuilt. It records equal matches of several routes, of which one
shadows the others (condition RouteRulesOverlap). It also records all others that never receive a
request (shadowed_match.py).
Source: Gateway API HTTPRouteRule.matches; architecture decision 2 (incremental by construction).
Must never: depend on the order in which routes came; the same routes give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from edgefast import ir
from edgefast.api.model.route_name import ref_of_key
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap
from edgefast.diagnostics.problem import Problem
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.intern import intern
from edgefast.translate.route.outcome import RouteOutcome, RoutePart
from edgefast.translate.virtual_host.shadowed_match import HostEntry, find_shadows
from edgefast.translate.virtual_host.tie_break import (
    WIDENED,
    break_ties,
    order_calls,
    tie_break_key,
)

Place = tuple[str, str]  # listener, hostname
BackendPolicy = tuple[
    str, int, tuple[str, ...]
]  # cluster, and as ir.BackendPolicy: ceilings, traffic
Loss = tuple[HostEntry, HostEntry]  # what never takes a request, and what takes them all

_NONE: Mapping[Key, Any] = {}  # most hosts have nothing to tell
_NAMED = 3  # rival routes that a message names


class HostOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One virtual host."""

    host: ir.VirtualHost
    parts: tuple[RoutePart, ...]  # the oldest first
    clusters: tuple[ClusterRef, ...]
    limited: bool  # a rule of it has rate limits
    units: tuple[str, ...]  # of policies that its rules name, each once
    treatments: tuple[
        BackendPolicy, ...
    ]  # of clusters, by rules with policies of traffic; each once
    overlaps: Mapping[Key, tuple[Problem, ...]]  # of routes that share a match with others
    shadows: Mapping[Key, tuple[Loss, ...]]  # by route: what never takes a request

    @property
    def routes(self) -> frozenset[Key]:
        """The routes that have a part of it."""
        return frozenset(part.key for part in self.parts)

    def entries(self) -> list[HostEntry]:
        """Return its matches in order of precedence; made anew each time."""
        return _list_entries(self.parts)


class Hosts(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """All virtual hosts."""

    outcomes: SortedMap[Place, HostOutcome] = EMPTY
    touched: frozenset[Place] = frozenset()  # that differ from the translation before
    noted: SortedMap[Place, None] = EMPTY  # of which there is something to tell
    made: int = 0

    def problems(self) -> Iterator[Problem]:
        """Give the problems of all hosts, by host."""
        for place in self.noted:
            for problems in self.outcomes[place].overlaps.values():
                yield from problems


def translate_virtual_hosts(
    changed: Iterable[tuple[RouteOutcome | None, RouteOutcome | None]], previous: Hosts
) -> Hosts:
    """Apply (old, new) pairs of route outcomes to the hosts; None means absent."""
    outcomes, noted = previous.outcomes.edit(), previous.noted.edit()
    touched: dict[Place, dict[Key, RoutePart]] = {}
    for old, new in changed:
        before = {(listener, name): part for listener, name, part in old.hosts} if old else {}
        after = {(listener, name): part for listener, name, part in new.hosts} if new else {}
        for place, part in before.items():
            if after.get(place) is not part:
                _touch(touched, outcomes, place).pop(part.key, None)
        for place, part in after.items():
            if before.get(place) is not part:
                _touch(touched, outcomes, place)[part.key] = part
    made = 0
    for place, parts in touched.items():
        noted.pop(place, None)
        if not parts:
            outcomes.pop(place, None)
            continue
        made += 1
        one = outcomes[place] = _build(place, parts, outcomes.get(place))
        if one.overlaps or one.shadows:
            noted[place] = None
    return Hosts(
        outcomes=outcomes.done(),
        touched=frozenset(touched),
        noted=noted.done(),
        made=made,
    )


def _touch(
    touched: dict[Place, dict[Key, RoutePart]],
    outcomes: Draft[Place, HostOutcome],
    place: Place,
) -> dict[Key, RoutePart]:
    if place not in touched:
        old = outcomes.get(place)
        touched[place] = {part.key: part for part in old.parts} if old else {}
    return touched[place]


def _build(place: Place, parts: Mapping[Key, RoutePart], old: HostOutcome | None) -> HostOutcome:
    ordered = tuple(parts.values())
    alone = ordered[0] if len(ordered) == 1 else None
    if alone is None:
        ordered = tuple(sorted(ordered, key=attrgetter("age")))
    entries = _list_entries(ordered)
    rules = alone.rules if alone else tuple(rule for part in ordered for rule in part.rules)
    placed = tuple([ir.Entry(match=entry[4], rule=entry[5]) for entry in entries])
    units: dict[str, None] = {}
    treatments: dict[BackendPolicy, None] = {}
    for rule in rules:
        named = rule.policies or rule.traffic
        for share in rule.backends:
            message = share.treatment or rule
            named = named or message.traffic
            if message.traffic and share.cluster:
                treatments[share.cluster, message.ceilings, message.traffic] = None
        if named:  # most rules have none
            units.update(dict.fromkeys(rule.units()))
    host = ir.VirtualHost(
        listener=place[0],
        hostname=place[1],
        rules=rules,
        entries=intern(placed) if len(placed) == 1 else placed,
    )
    return HostOutcome(
        host=old.host if old is not None and old.host == host else host,
        parts=ordered,
        clusters=alone.clusters
        if alone
        else tuple(dict.fromkeys(ref for part in ordered for ref in part.clusters)),
        limited=any(one.kind == "Window" for rule in rules for one in rule.rate_limits),
        units=(*units,),
        treatments=(*treatments,),
        overlaps=_NONE if alone else _find_overlaps(place, entries),
        shadows=(_group(find_shadows(entries)) if len(entries) > 1 else None) or _NONE,
    )


def _list_entries(ordered: Iterable[RoutePart]) -> list[HostEntry]:
    """Return the matches of parts, the oldest of which is first, in order of precedence."""
    entries: list[HostEntry] = []
    base, widened = 0, False
    for part in ordered:
        turn = tie_break_key(part.age)
        for order, index, at, match in part.candidates:
            entries.append((order, turn, index, at, match, base + index, part.key))
            widened = widened or order[-1] == WIDENED
        base += len(part.rules)
    if widened:
        entries = break_ties(entries)
    entries = order_calls(entries)
    entries.sort()  # gets to the match only where HTTPRouteFilters made several of one
    return entries


def _group(losses: Iterable[Loss]) -> dict[Key, tuple[Loss, ...]]:
    by_route: dict[Key, list[Loss]] = {}
    for loss in losses:
        by_route.setdefault(loss[0][6], []).append(loss)
    return {key: tuple(found) for key, found in by_route.items()}


def _find_overlaps(place: Place, entries: list[HostEntry]) -> dict[Key, tuple[Problem, ...]]:
    """Find equal matches of different routes; the first in order takes their requests."""
    groups: dict[ir.Match, list[HostEntry]] = {}
    for entry in entries:
        groups.setdefault(entry[4], []).append(entry)
    overlaps: dict[Key, tuple[Problem, ...]] = {}
    for group in groups.values():
        keys = list(dict.fromkeys(entry[6] for entry in group))
        if len(keys) < 2:
            continue
        for entry in group:
            problem = _overlap(place, entry, keys)
            overlaps[entry[6]] = (*overlaps.get(entry[6], ()), problem)
    return overlaps


def _overlap(place: Place, entry: HostEntry, keys: list[Key]) -> Problem:
    rivals = ["/".join(key) for key in keys if key != entry[6]][:_NAMED]
    names = ", ".join(rivals) + (" and more" if len(keys) - 1 > _NAMED else "")
    first = "takes" if keys[0] == entry[6] else f"never matches because {ref_of_key(keys[0])} does"
    return Problem(
        object=ref_of_key(entry[6]),
        path=f"spec.rules[{entry[2]}].matches[{entry[3]}]",
        reason="RouteRulesOverlap",
        message=f"equals a match of {names} on {place[0]} and {first} the requests",
        severity="warning",
    )
