"""Statuses: all statuses of a translation.

In: the outcomes of every stage. Out: `Statuses`. Routes with matches equal to those of others get
RouteRulesOverlap here; routes with unreachable rules get RouteRulesShadowed. Only virtual hosts
know both.
Must never: write anything; a controller does, and only what differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from edgefast.api.model.origin import is_made
from edgefast.api.model.route_name import kind_of, plain_key
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap
from edgefast.diagnostics.problem import Problem
from edgefast.translate.conditions.condition import holds, render_problems
from edgefast.translate.conditions.status import (
    GatewayClassStatus,
    PolicyStatus,
    RouteStatus,
    Statuses,
)
from edgefast.translate.diagnostics.unreachable_rule import Reachability
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.gatewayclass import GatewayClassOutcome
from edgefast.translate.route.outcome import RouteOutcome
from edgefast.translate.route.route_sums import RouteSums
from edgefast.translate.settings import Settings
from edgefast.translate.status.affected_by_policies import Attached
from edgefast.translate.status.edge_policy import EdgePolicyStatuses
from edgefast.translate.status.gateway import Filtered, compute_gateway_status, index_fleets
from edgefast.translate.status.ingress import IngressStatuses
from edgefast.translate.status.listenerset import compute_listener_set_status
from edgefast.translate.status.xbackend import XBackendStatuses
from edgefast.translate.virtual_host.virtual_host import Hosts


class RouteStatuses(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all routes, by kind."""

    http: SortedMap[Key, RouteStatus] = EMPTY
    others: Mapping[str, SortedMap[Key, RouteStatus]] = {}

    def of(self, kind: str) -> SortedMap[Key, RouteStatus]:
        """Return those of a kind but HTTPRoute."""
        return self.others.get(kind, EMPTY)


def compute_statuses(
    classes: Mapping[str, GatewayClassOutcome],
    gateways: Sequence[GatewayDraft],
    routes: RouteStatuses,
    policies: dict[Key, PolicyStatus],
    own: EdgePolicyStatuses,
    x_backends: XBackendStatuses,
    sums: RouteSums,
    settings: Settings,
    attached: Attached,
    filters: Filtered,
    ingresses: IngressStatuses,
) -> Statuses:
    """Return the status of every object of ours; those of routes and policies are judged already; `attached`: policies of ours, by target."""
    fleets = index_fleets(settings)
    of_gateways = {
        draft.key: compute_gateway_status(draft, sums.attached, fleets, settings, attached, filters)
        for draft in sorted(gateways, key=lambda draft: draft.key)
        if settings.standalone or not draft.made  # of a made one only `edgefast run` shows anything
    }
    sets = sorted(
        ((one, draft) for draft in gateways for one in draft.sets), key=lambda pair: pair[0].key
    )
    return Statuses(
        gateway_classes=_compute_class_statuses(classes),
        gateways={key: one for key, one in of_gateways.items() if not is_made(key[1])},
        made_gateways={key: one for key, one in of_gateways.items() if is_made(key[1])},
        ingresses=ingresses.statuses,
        listener_sets={
            one.key: compute_listener_set_status(
                one, draft, sums.attached, of_gateways[draft.key], attached, filters
            )
            for one, draft in sets
        },
        parents={one.key: draft.key for one, draft in sets},
        http_routes=routes.http,
        grpc_routes=routes.of("GRPCRoute"),
        tls_routes=routes.of("TLSRoute"),
        tcp_routes=routes.of("TCPRoute"),
        udp_routes=routes.of("UDPRoute"),
        backend_tls_policies=policies,
        security_policies=own.of("SecurityPolicy"),
        backend_traffic_policies=own.of("BackendTrafficPolicy"),
        x_backends=x_backends.statuses,
        x_backend_traffic_policies=own.of("XBackendTrafficPolicy"),
    )


def _compute_class_statuses(
    classes: Mapping[str, GatewayClassOutcome],
) -> dict[Key, GatewayClassStatus]:
    return {("", name): outcome.status for name, outcome in classes.items() if not is_made(name)}


def compute_route_statuses(
    routes: Mapping[Key, RouteOutcome],
    sums: RouteSums,
    hosts: Hosts,
    reach: Reachability,
    previous: RouteStatuses,
) -> RouteStatuses:
    """Return the statuses of all routes; only those that `reach` has looked at are judged anew."""
    http = previous.http.edit()
    others: dict[str, Draft[Key, RouteStatus]] = {}
    for key in sorted(reach.suspects):
        found, plain, status = http, key, sums.statuses.get(key)
        if "/" in key[0]:  # only those of other kinds have one
            kind, plain = kind_of(key), plain_key(key)
            if kind not in others:
                others[kind] = previous.of(kind).edit()
            found = others[kind]
        if status is None or is_made(plain[1]):
            found.pop(plain, None)
            continue
        outcome = routes[key]
        overlaps, unreached = _overlaps_of(key, outcome, hosts), reach.warnings.get(key, ())
        if overlaps or unreached:
            status = _compute_route_status(outcome, overlaps, unreached)
        if found.get(plain) != status:
            found[plain] = status
    done = {kind: one.done() for kind, one in others.items()}
    return RouteStatuses(http=http.done(), others={**previous.others, **done})


def _overlaps_of(key: Key, outcome: RouteOutcome, hosts: Hosts) -> list[tuple[str, Problem]]:
    """Return the matches of a route that others have as well, by host."""
    places = sorted((listener, name) for listener, name, _ in outcome.hosts)
    return [
        (place[0], one) for place in places for one in hosts.outcomes[place].overlaps.get(key, ())
    ]


def _compute_route_status(
    outcome: RouteOutcome,
    overlaps: Iterable[tuple[str, Problem]],
    unreached: Iterable[tuple[str, Problem]],
) -> RouteStatus:
    parents = []
    for parent, listeners in zip(outcome.status.parents, outcome.listeners, strict=True):
        conditions = parent.conditions
        equal = [problem for at, problem in overlaps if at in listeners]
        shadowed = [problem for at, problem in unreached if at in listeners]
        for word, found in (("RouteRulesOverlap", equal), ("RouteRulesShadowed", shadowed)):
            if found:
                message = render_problems(found)
                generation = outcome.route.metadata.generation
                conditions = (*conditions, holds(word, word, message, generation))
        parents.append(msgspec.structs.replace(parent, conditions=conditions))
    return RouteStatus(parents=tuple(parents))
