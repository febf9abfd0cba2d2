"""All statuses of a translation.

In: the outcomes of every stage. Out: `Statuses`. Routes whose matches equal those of others get RouteRulesOverlap here, and those with
rules that no request comes to RouteRulesShadowed, since only virtual hosts know.
Must never: write anything; a controller does, and only what differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from edgefast.problem import Problem
from edgefast.resources.snapshot import Key
from edgefast.sortedmap import SortedMap
from edgefast.translate.condition import holds, render_problems
from edgefast.translate.gateway import GatewayDraft
from edgefast.translate.gatewayclass import GatewayClassOutcome
from edgefast.translate.gatewaystatus import judge_gateway
from edgefast.translate.listenersetstatus import judge_listener_set
from edgefast.translate.policy import Policies
from edgefast.translate.policystatus import judge_policies
from edgefast.translate.reach import Unreached
from edgefast.translate.route import RouteOutcome
from edgefast.translate.routesums import RouteSums
from edgefast.translate.settings import Settings
from edgefast.translate.status import (
    GatewayClassStatus,
    HTTPRouteStatus,
    Statuses,
)
from edgefast.translate.virtualhost import Hosts

_Overlaps = dict[Key, list[tuple[str, tuple[Problem, ...]]]]  # by route: (listener, problems)


def judge_all(
    classes: Mapping[str, GatewayClassOutcome],
    gateways: Sequence[GatewayDraft],
    routes: Mapping[Key, RouteOutcome],
    sums: RouteSums,
    hosts: Hosts,
    unreached: Unreached,
    policies: Policies,
    settings: Settings,
) -> Statuses:
    """Return the status of every object of ours."""
    overlaps = _overlaps_of(hosts)
    of_gateways = {
        draft.key: judge_gateway(draft, sums.attached, settings)
        for draft in sorted(gateways, key=lambda draft: draft.key)
    }
    sets = sorted(
        ((one, draft) for draft in gateways for one in draft.sets), key=lambda pair: pair[0].key
    )
    return Statuses(
        gateway_classes=_judge_classes(classes),
        gateways=of_gateways,
        listener_sets={
            one.key: judge_listener_set(one, draft, sums.attached, of_gateways[draft.key])
            for one, draft in sets
        },
        parents={one.key: draft.key for one, draft in sets},
        http_routes=_judge_routes(routes, sums.statuses, overlaps, unreached),
        backend_tls_policies=judge_policies(policies, sums.users_of, settings),
    )


def _judge_classes(classes: Mapping[str, GatewayClassOutcome]) -> dict[Key, GatewayClassStatus]:
    return {("", name): outcome.status for name, outcome in classes.items()}


def _judge_routes(
    routes: Mapping[Key, RouteOutcome],
    statuses: SortedMap[Key, HTTPRouteStatus],
    overlaps: _Overlaps,
    unreached: Unreached,
) -> SortedMap[Key, HTTPRouteStatus]:
    told = overlaps.keys() | unreached.keys()
    if not told:
        return statuses
    found = statuses.edit()
    for key in told:
        if key in found:
            found[key] = _judge_route(routes[key], overlaps.get(key, ()), unreached.get(key, ()))
    return found.done()


def _overlaps_of(hosts: Hosts) -> _Overlaps:
    overlaps: _Overlaps = {}
    for place in sorted(hosts.noted):
        for key, problems in hosts.outcomes[place].overlaps.items():
            overlaps.setdefault(key, []).append((place[0], problems))
    return overlaps


def _judge_route(
    outcome: RouteOutcome,
    overlaps: Iterable[tuple[str, tuple[Problem, ...]]],
    unreached: Iterable[tuple[str, Problem]],
) -> HTTPRouteStatus:
    parents = []
    for parent, listeners in zip(outcome.status.parents, outcome.listeners, strict=True):
        conditions = parent.conditions
        equal = [one for at, problems in overlaps if at in listeners for one in problems]
        shadowed = [problem for at, problem in unreached if at in listeners]
        for word, found in (("RouteRulesOverlap", equal), ("RouteRulesShadowed", shadowed)):
            if found:
                said = render_problems(found)
                generation = outcome.route.metadata.generation
                conditions = (*conditions, holds(word, word, said, generation))
        parents.append(msgspec.structs.replace(parent, conditions=conditions))
    return HTTPRouteStatus(parents=tuple(parents))
