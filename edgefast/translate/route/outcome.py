"""Outcome: the translation of one route, and the acceptance rules of all kinds of routes.

In: the results of a route's parents and rules. Out: `RouteOutcome`, its parts, and the status at
each parent.
Must never: know of other routes, or of a kind's own fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from edgefast import ir
from edgefast.api.gateway.layer4_route import AnyRoute
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.route_name import RouteKey, route_key
from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import Problem
from edgefast.translate.conditions.condition import (
    Condition,
    condition_of,
    fails,
    holds,
    render_problems,
)
from edgefast.translate.conditions.status import RouteParentStatus, RouteStatus
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Fact, Reader
from edgefast.translate.deps.intern import intern
from edgefast.translate.match.precedence import Age, MatchOrder
from edgefast.translate.policy.merge import Effective
from edgefast.translate.report.report import Report
from edgefast.translate.route.attachment import Attachment
from edgefast.translate.route.rule import RuleOutcome

#: Of a route with addresses among its hostnames, which an API server may let through.
ADDRESSES = Closed(
    "spec.hostnames",
    "Invalid IP addresses are not allowed",
    cause="while one of its hostnames is invalid",
)
#: Order of the match, rule, place in spec.rules[].matches, match.
Candidate = tuple[MatchOrder, int, int, ir.Match]


class RoutePart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a route adds to each of its virtual hosts on Gateways with one client certificate."""

    key: RouteKey
    age: Age
    rules: tuple[ir.Rule, ...]
    candidates: tuple[Candidate, ...]
    clusters: tuple[ClusterRef, ...]


class StreamPart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a route of layer 4 sends what comes to one of its places, if it has that."""

    key: RouteKey
    age: Age
    route: ir.StreamRoute  # without listener and hostname
    above: Effective = Effective()  # units of policies that are for it
    refused: tuple[
        tuple[str, str], ...
    ] = ()  # those that close it, and the field that cannot apply
    clusters: tuple[ClusterRef, ...] = ()


class RouteOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One route."""

    route: AnyRoute
    source: str
    reads: tuple[Fact, ...]  # of Reader.noted
    status: RouteStatus = RouteStatus(parents=())  # as far as the route alone decides
    listeners: tuple[
        tuple[str, ...], ...
    ] = ()  # per entry of `status.parents`: names of its listeners
    counted: tuple[str, ...] = ()  # listeners whose attachedRoutes it adds to
    hosts: tuple[tuple[str, str, RoutePart], ...] = ()  # listener, hostname, part
    streams: tuple[tuple[str, str, StreamPart], ...] = ()  # listener, hostname, part
    clusters: tuple[ClusterRef, ...] = ()  # all it looked at or sends to
    users: tuple[tuple[Key, Key], ...] = ()  # (Gateway, Service) pairs, for policies' ancestors
    x_users: tuple[tuple[Key, Key], ...] = ()  # (XBackend, Gateway) pairs, for their statuses
    problems: tuple[Problem, ...] = ()
    rival: RouteOutcome | None = (
        None  # what it would be, if none of the other kind were before it (route_conflicts.py)
    )


def key_of_route(route: AnyRoute) -> RouteKey:
    """Return the key of a route among routes of all kinds."""
    return route_key(type(route).__name__, route.metadata.namespace, route.metadata.name)


def check_unsupported(route: AnyRoute, report: Report, *, standalone: bool) -> None:
    """Tell of what routes of all kinds may say and nobody does; of one that is of no Gateway."""
    lost = standalone and not route.spec.parent_refs
    if route.spec.use_default_gateways not in (None, "None"):
        message = "default Gateways are not supported; set parentRefs"
        tell = report.refuse if lost else report.warn
        tell("spec.useDefaultGateways", "NotSupported", message)
    elif lost:
        message = "a Gateway to serve the route"
        report.refuse("spec.parentRefs", "Required", message)


def compute_parent_status(
    route: AnyRoute,
    attached: Attachment,
    report: Report,
    own: Report,
    rules: Sequence[RuleOutcome],
    working: bool,
    reader: Reader,
) -> RouteParentStatus:
    """Return what a route comes to at one parent; `report`: of that, `own`: of the route, `working`: not all of it is a mistake."""
    generation = route.metadata.generation
    conditions: list[Condition] = []
    refused = report.refused if report.refused or working else own.refused
    conditions.append(
        condition_of(
            "Accepted", refused, generation, reason="Accepted", message="Route is accepted"
        )
    )
    conditions.append(
        condition_of(
            "ResolvedRefs",
            own.unresolved,
            generation,
            reason="ResolvedRefs",
            message="All references are resolved",
        )
    )
    if own.unavailable:
        message = render_problems(own.unavailable)
        conditions.append(fails("BackendsAvailable", "EndpointsNotFound", message, generation))
    if own.refused and not refused:
        message = f"{_report_dropped(rules)}: {render_problems(own.refused)}"
        conditions.append(holds("PartiallyInvalid", "UnsupportedValue", message, generation))
    return RouteParentStatus(
        parent_ref=attached.parent,
        controller_name=reader.settings.controller_name,
        conditions=tuple(conditions),
    )


def _report_dropped(rules: Sequence[RuleOutcome]) -> str:
    """Say which rules are broken."""
    broken = ", ".join(str(one.rule.index) for one in rules if one.broken)
    return (
        f"Dropped Rule {broken} (answering 500)" if broken else "Dropped Rule parts (answering 500)"
    )


def settle(
    route: AnyRoute,
    source: str,
    reader: Reader,
    attachments: list[tuple[Attachment, Report]],
    parents: Iterable[RouteParentStatus],
    counted: Iterable[str],
    problems: Iterable[Problem],
    *,
    hosts: Mapping[tuple[str, str], RoutePart] | None = None,
    streams: Mapping[tuple[str, str], StreamPart] | None = None,
    used: Iterable[tuple[ClusterRef, ...]],
) -> RouteOutcome:
    """Return the outcome of a route that was translated; `used`: clusters that its parts send to, by (listener, hostname) or nowhere yet."""
    return RouteOutcome(
        route=route,
        source=source,
        reads=reader.noted(),
        status=intern(RouteStatus(parents=tuple(parents))),
        listeners=intern(
            tuple(
                tuple(listener.name for listener, _ in attached.listeners)
                for attached, _ in attachments
            )
        ),
        counted=intern(tuple(counted)),
        hosts=tuple((*place, part) for place, part in (hosts or {}).items()),
        streams=tuple((*place, part) for place, part in (streams or {}).items()),
        clusters=tuple(sorted(reader.clusters.union(*used))),
        users=_users_of("Service", attachments, reader),
        x_users=_users_of("XBackend", attachments, reader) if reader.x_backends else (),
        problems=tuple(problems),
    )


def _users_of(
    kind: str, attachments: list[tuple[Attachment, Report]], reader: Reader
) -> tuple[tuple[Key, Key], ...]:
    """Return (Service, Gateway) for each Service, or XBackend, that a Gateway that took the route uses because of it."""
    used = [(one[1], one[2]) for one in reader.reads if one[0] == kind]
    if not used:
        return ()
    gateways = {
        intern((one.gateway.namespace, one.gateway.name)) for one, _ in attachments if one.listeners
    }
    return tuple(sorted((one, gateway) for gateway in gateways for one in used))
