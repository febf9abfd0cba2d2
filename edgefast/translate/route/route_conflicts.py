"""Route conflicts: an HTTPRoute and a GRPCRoute on one listener with a common hostname; only one is accepted.

In: the outcomes of all routes and what changed. Out: the same outcomes, except for the losers. A
parent does not accept a route, and serves nothing of it, if an older route of the other kind shares
a listener and a hostname.
Source: Gateway API GRPCRouteSpec.hostnames, HTTPRouteSpec.hostnames: the oldest, then by
namespace/name; rules of the two are never merged.
Cost: nothing without GRPCRoutes; else all routes of listeners with GRPCRoutes, when one of these
changes.
Must never: depend on the order in which routes came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from edgefast.api.kinds import ref_of
from edgefast.api.model.route_name import GRPC, RouteKey, kind_of
from edgefast.collections.sorted_map import SortedMap
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.conditions.condition import condition_of
from edgefast.translate.conditions.status import RouteStatus
from edgefast.translate.match.hostname import intersects
from edgefast.translate.match.precedence import age_order
from edgefast.translate.report.report import Report
from edgefast.translate.route.outcome import RouteOutcome

Change = tuple[RouteOutcome | None, RouteOutcome | None]
Outcomes = SortedMap[RouteKey, RouteOutcome]
#: Kind, route, hosts.
_Held = tuple[str, ObjectRef, tuple[str, ...]]


def resolve_conflicts(outcomes: Outcomes, changes: dict[RouteKey, Change]) -> Outcomes:
    """Return the outcomes with what losers come to, and note it in `changes`: those of this translation, by route."""
    shared = {name for one in _grpc_outcomes(outcomes) for name in _listeners(one)}
    changed = (one for pair in changes.values() for one in pair if one is not None)
    gone = False
    for key in changes:  # no call for each of ten thousand
        gone = gone or GRPC in key[0]
    if not gone and (not shared or all(shared.isdisjoint(_listeners(one)) for one in changed)):
        return outcomes
    involved = [
        (age_order(one.route.metadata), kind_of(key), key)
        for key, one in outcomes.items()
        if one.rival is not None or not shared.isdisjoint(_listeners(one))
    ]
    settled = outcomes.edit()
    held: dict[str, list[_Held]] = {}
    for _, kind, key in sorted(involved):
        present = outcomes[key]
        raw = _raw(present)
        winners = _find_winners(raw, kind, held)
        made = _lose(raw, winners) if winners else raw
        for name, hosts in _hosts(made).items():
            held.setdefault(name, []).append((kind, ref_of(raw.route), hosts))
        if made is not present and not (winners and _are_same(made, present)):
            settled[key] = made
            changes[key] = (changes[key][0] if key in changes else present, made)
    return settled.done()


def _grpc_outcomes(outcomes: Outcomes) -> Iterator[RouteOutcome]:
    for key in outcomes.starting_at((GRPC, "")):
        if not key[0].startswith(GRPC):
            return
        yield outcomes[key]


def _are_same(one: RouteOutcome, other: RouteOutcome) -> bool:
    return (
        one.rival is other.rival
        and one.status == other.status
        and (one.hosts, one.counted, one.problems) == (other.hosts, other.counted, other.problems)
    )


def _raw(outcome: RouteOutcome) -> RouteOutcome:
    """Return an outcome as the route alone decides it."""
    return outcome.rival or outcome


def _listeners(outcome: RouteOutcome) -> Iterator[str]:
    return (name for name, _, _ in _raw(outcome).hosts)


def _hosts(outcome: RouteOutcome) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, host, _ in outcome.hosts:
        found[name] = (*found.get(name, ()), host)
    return found


def _find_winners(
    raw: RouteOutcome, kind: str, held: Mapping[str, list[_Held]]
) -> dict[str, ObjectRef]:
    """Return the older route of the other kind, by the listener on which it has a host in common with this one."""
    winners: dict[str, ObjectRef] = {}
    for name, hosts in _hosts(raw).items():
        for other, ref, names in held.get(name, ()):
            if other != kind and any(intersects(one, two) for one in hosts for two in names):
                winners[name] = ref
                break
    return winners


def _lose(raw: RouteOutcome, winners: Mapping[str, ObjectRef]) -> RouteOutcome:
    report = Report(ref_of(raw.route))
    lost: set[str] = set()
    kept: set[str] = set()
    parents = []
    for at, (parent, listeners) in enumerate(zip(raw.status.parents, raw.listeners, strict=True)):
        places = sorted(one for one in listeners if one in winners)
        if not places:
            kept.update(listeners)
            parents.append(parent)
            continue
        lost.update(listeners)
        message = f"{winners[places[0]]} takes precedence and has a host of {places[0]} in common: a listener serves only one kind of route for a host"
        problem = report.refuse(f"spec.parentRefs[{at}]", "NotAllowedByListeners", message)
        generation = raw.route.metadata.generation
        accepted = condition_of("Accepted", [problem], generation, reason="Accepted", message="")
        conditions = (accepted, *(one for one in parent.conditions if one.type != "Accepted"))
        parents.append(msgspec.structs.replace(parent, conditions=conditions))
    gone = (lost - kept) | winners.keys()
    return msgspec.structs.replace(
        raw,
        status=RouteStatus(parents=tuple(parents)),
        counted=tuple(one for one in raw.counted if one not in gone),
        hosts=tuple(one for one in raw.hosts if one[0] not in gone),
        problems=(*raw.problems, *report.problems),
        rival=raw,
    )
