"""All statuses of a translation.

In: the outcomes of every stage. Out: `Statuses`, and which Gateways use which of the Services that
policies target. Routes whose matches equal those of others get RouteRulesOverlap here, since only
virtual hosts know.
Must never: write anything; a controller does, and only what differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from edgefast.problem import Problem
from edgefast.resources.snapshot import Key
from edgefast.translate.condition import holds, render_problems
from edgefast.translate.gateway import GatewayDraft
from edgefast.translate.gatewayclass import GatewayClassOutcome
from edgefast.translate.gatewaystatus import judge_gateway
from edgefast.translate.policy import Policies
from edgefast.translate.policystatus import judge_policies
from edgefast.translate.route import RouteOutcome
from edgefast.translate.settings import Settings
from edgefast.translate.status import (
    GatewayClassStatus,
    HTTPRouteStatus,
    ListenerSetStatus,
    Statuses,
)
from edgefast.translate.virtualhost import Hosts

_Overlaps = dict[Key, list[tuple[str, tuple[Problem, ...]]]]  # by route: (listener, problems)


def judge_all(
    classes: Mapping[str, GatewayClassOutcome],
    gateways: Sequence[GatewayDraft],
    listener_sets: dict[Key, ListenerSetStatus],
    routes: Mapping[Key, RouteOutcome],
    hosts: Hosts,
    policies: Policies,
    settings: Settings,
) -> Statuses:
    """Return the status of every object of ours, each table by namespace and name."""
    attached = Counter(chain.from_iterable(outcome.counted for outcome in routes.values()))
    overlaps = _overlaps_of(hosts)
    return Statuses(
        gateway_classes=_judge_classes(classes),
        gateways={
            draft.key: judge_gateway(draft, attached, settings)
            for draft in sorted(gateways, key=lambda draft: draft.key)
        },
        listener_sets=listener_sets,
        http_routes={
            key: _judge_route(outcome, overlaps.get(key, ()))
            for key, outcome in routes.items()
            if outcome.parents
        },
        backend_tls_policies=judge_policies(policies, _users_of(policies, routes), settings),
    )


def _judge_classes(classes: Mapping[str, GatewayClassOutcome]) -> dict[Key, GatewayClassStatus]:
    return {("", name): outcome.status for name, outcome in classes.items()}


def _overlaps_of(hosts: Hosts) -> _Overlaps:
    overlaps: _Overlaps = {}
    for place in sorted(place for place, one in hosts.outcomes.items() if one.overlaps):
        for key, problems in hosts.outcomes[place].overlaps.items():
            overlaps.setdefault(key, []).append((place[0], problems))
    return overlaps


def _judge_route(
    outcome: RouteOutcome, overlaps: Iterable[tuple[str, tuple[Problem, ...]]]
) -> HTTPRouteStatus:
    if not overlaps:
        return HTTPRouteStatus(parents=outcome.parents)
    parents = []
    for parent, listeners in zip(outcome.parents, outcome.listeners, strict=True):
        found = [
            one for listener, problems in overlaps if listener in listeners for one in problems
        ]
        if found:
            condition = holds(
                "RouteRulesOverlap",
                "RouteRulesOverlap",
                render_problems(found),
                outcome.route.metadata.generation,
            )
            parent = msgspec.structs.replace(parent, conditions=(*parent.conditions, condition))
        parents.append(parent)
    return HTTPRouteStatus(parents=tuple(parents))


def _users_of(policies: Policies, routes: Mapping[Key, RouteOutcome]) -> dict[Key, set[Key]]:
    """Return the Gateways that use each Service; nothing when there are no policies."""
    users: dict[Key, set[Key]] = {}
    if policies.outcomes:
        for outcome in routes.values():
            for gateway, service in outcome.users:
                users.setdefault(service, set()).add(gateway)
    return users
