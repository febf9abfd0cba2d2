"""Routes: one route -> its statuses and what it adds to virtual hosts.

In: a route and a Reader. Out: a `RouteOutcome`, valid until the route or a fact it read changes; it
holds no line numbers, so that text moving in a file changes nothing.
Source: Gateway API HTTPRoute, GRPCRoute. A route is accepted by a parent when a listener takes it and a rule of
it works; rules that do not are named in PartiallyInvalid.
Must never: know of other routes (see virtualhost.py).
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.problem import Problem
from edgefast.resources.gatewayapi.grpcroute import Route
from edgefast.resources.kinds import ref_of
from edgefast.resources.model.closed import Closed
from edgefast.resources.model.routename import RouteKey, name_of, route_key
from edgefast.resources.snapshot import Key
from edgefast.translate.facts.alike import alike
from edgefast.translate.facts.clusterref import ClusterRef
from edgefast.translate.facts.facts import Fact, Reader
from edgefast.translate.match.precedence import Age, MatchOrder, age_order, match_order
from edgefast.translate.report.report import Report
from edgefast.translate.route.attachment import Attachment, attach_route
from edgefast.translate.route.closed import close_rules
from edgefast.translate.route.rule import RuleOutcome, translate_rule
from edgefast.translate.status.condition import Condition, fails, holds, judge, render_problems
from edgefast.translate.status.status import RouteParentStatus, RouteStatus

#: Of a route with addresses among its hostnames, which an API server may let through.
_ADDRESSES = Closed(
    "spec.hostnames",
    "Invalid IP addresses are not allowed",
    cause="while one of its hostnames is none",
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


class RouteOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One route."""

    route: Route
    source: str
    reads: tuple[Fact, ...]  # of Reader.noted
    status: RouteStatus = RouteStatus(parents=())  # as far as the route alone decides
    listeners: tuple[
        tuple[str, ...], ...
    ] = ()  # per entry of `status.parents`: names of its listeners
    counted: tuple[str, ...] = ()  # listeners whose attachedRoutes it adds to
    hosts: tuple[tuple[str, str, RoutePart], ...] = ()  # listener, hostname, part
    clusters: tuple[ClusterRef, ...] = ()  # all it looked at or sends to
    users: tuple[tuple[Key, Key], ...] = ()  # (Gateway, Service) pairs, for policies' ancestors
    problems: tuple[Problem, ...] = ()
    rival: RouteOutcome | None = (
        None  # what it would be, if none of the other kind were before it (rivals.py)
    )


def key_of_route(route: Route) -> RouteKey:
    """Return the key of a route among routes of all kinds."""
    return route_key(type(route).__name__, route.metadata.namespace, route.metadata.name)


def translate_route(
    key: RouteKey, route: Route, source: str, reader: Reader, previous: RouteOutcome | None
) -> RouteOutcome:
    """Translate one route; parts equal to those of `previous` keep their identity."""
    ref = ref_of(route)
    age = age_order(route.metadata)
    named = age[1] if key[0] == route.metadata.namespace else name_of(key)
    reports, attachments = [], []
    for at, parent in enumerate(route.spec.parent_refs):
        report = Report(ref)
        attached = attach_route(route, parent, reader, report, f"spec.parentRefs[{at}]")
        reports.append(report)
        if attached is not None:
            attachments.append((attached, report))
    own, closed = Report(ref), route.closed
    for attached, _ in attachments:
        if attached.refused:
            closed = _ADDRESSES
    if route.closed is None:
        _check_unsupported(route, own, standalone=reader.settings.standalone)
    if not attachments and not reader.settings.standalone:
        return RouteOutcome(route=route, source=source, reads=reader.noted())
    certificates = dict.fromkeys(one.gateway.certificate for one, _ in attachments) or {"": None}
    rules = {
        certificate: [
            translate_rule(route, named, index, certificate, source, reader, report)
            for index in range(len(route.spec.rules))
        ]
        if closed is None
        else close_rules(
            route,
            named,
            closed,
            source,
            report,
            placed=any(one.listeners for one, _ in attachments),
        )
        for certificate, report in zip(
            certificates, (own, *(Report(ref) for _ in certificates)), strict=False
        )
    }
    first = next(iter(rules.values()))
    working = not first or not all(one.broken for one in first)
    parts = {
        certificate: _keep_part(_part_of(key, age, outcomes), previous)
        for certificate, outcomes in rules.items()
    }
    counted: dict[str, None] = {}
    hosts: dict[tuple[str, str], RoutePart] = {}
    parents = []
    for attached, report in attachments:
        parents.append(_judge_parent(route, attached, report, own, first, working, reader))
        part = parts[attached.gateway.certificate]
        for listener, hostnames in attached.listeners:
            if working:
                counted[listener.name] = None
            for hostname in hostnames if listener.served else ():
                hosts[listener.name, hostname] = part
    problems = [problem for report in reports for problem in report.problems]
    return RouteOutcome(
        route=route,
        source=source,
        reads=reader.noted(),
        status=alike(RouteStatus(parents=tuple(parents))),
        listeners=alike(
            tuple(
                tuple(listener.name for listener, _ in attached.listeners)
                for attached, _ in attachments
            )
        ),
        counted=alike(tuple(counted)),
        hosts=tuple((*place, part) for place, part in hosts.items()),
        clusters=tuple(sorted(reader.clusters.union(*(one.clusters for one in parts.values())))),
        users=_users_of(route, attachments, reader),
        problems=(*problems, *own.problems),
    )


def _check_unsupported(route: Route, report: Report, *, standalone: bool) -> None:
    lost = standalone and not route.spec.parent_refs
    if route.spec.use_default_gateways not in (None, "None"):
        said = "default Gateways are not available yet; name parents in parentRefs"
        tell = report.refuse if lost else report.warn
        tell("spec.useDefaultGateways", "NotSupported", said)
    elif lost:
        said = "a Gateway to serve the route; there is none"
        report.refuse("spec.parentRefs", "Required", said)


def _part_of(key: RouteKey, age: Age, outcomes: list[RuleOutcome]) -> RoutePart:
    return RoutePart(
        key=key,
        age=age,
        rules=tuple(one.rule for one in outcomes),
        candidates=alike(
            tuple(
                (match_order(match, one.widened.get(at), one.characters.get(at)), index, at, match)
                for index, one in enumerate(outcomes)
                for at, match in one.matches
            )
        ),
        clusters=tuple(dict.fromkeys(ref for one in outcomes for ref in one.clusters)),
    )


def _keep_part(part: RoutePart, previous: RouteOutcome | None) -> RoutePart:
    for _, _, old in previous.hosts if previous else ():
        if old == part:
            return old
    return part


def _judge_parent(
    route: Route,
    attached: Attachment,
    report: Report,
    own: Report,
    rules: list[RuleOutcome],
    working: bool,
    reader: Reader,
) -> RouteParentStatus:
    generation = route.metadata.generation
    conditions: list[Condition] = []
    refused = report.refused if report.refused or working else own.refused
    conditions.append(
        judge("Accepted", refused, generation, reason="Accepted", message="Route is accepted")
    )
    conditions.append(
        judge(
            "ResolvedRefs",
            own.unresolved,
            generation,
            reason="ResolvedRefs",
            message="All references are resolved",
        )
    )
    if own.unavailable:
        said = render_problems(own.unavailable)
        conditions.append(fails("BackendsAvailable", "EndpointsNotFound", said, generation))
    if own.refused and not refused:
        said = f"{_tell_dropped(rules)}: {render_problems(own.refused)}"
        conditions.append(holds("PartiallyInvalid", "UnsupportedValue", said, generation))
    return RouteParentStatus(
        parent_ref=attached.parent,
        controller_name=reader.settings.controller_name,
        conditions=tuple(conditions),
    )


def _tell_dropped(rules: list[RuleOutcome]) -> str:
    """Say which rules are broken."""
    broken = ", ".join(str(one.rule.index) for one in rules if one.broken)
    return (
        f"Dropped Rule {broken} (answering 500)" if broken else "Dropped Rule parts (answering 500)"
    )


def _users_of(
    route: Route, attachments: list[tuple[Attachment, Report]], reader: Reader
) -> tuple[tuple[Key, Key], ...]:
    """Return (Service, Gateway) for each Service that a Gateway that took the route uses because of it."""
    services = [(one[1], one[2]) for one in reader.reads if one[0] == "Service"]
    gateways = {
        alike((one.gateway.namespace, one.gateway.name)) for one, _ in attachments if one.listeners
    }
    return tuple(sorted((service, gateway) for gateway in gateways for service in services))
