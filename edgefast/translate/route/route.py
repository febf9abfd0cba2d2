"""Route: one route -> its statuses and its part of virtual hosts.

In: a route and a Reader. Out: a `RouteOutcome`, valid until the route or a fact it read changes. It
holds no line numbers, so that text moving in a file changes nothing. A parent accepts a route when
a listener takes it and one of its rules works; PartiallyInvalid names the broken rules.
Source: Gateway API HTTPRoute, GRPCRoute (layer 4: layer4.py).
Must never: know of other routes (see virtual_host.py).
"""

from __future__ import annotations

from edgefast.api.gateway.grpcroute import Route
from edgefast.api.kinds import ref_of
from edgefast.api.model.route_name import RouteKey, name_of
from edgefast.api.validation.regexes import find_excess
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.intern import intern
from edgefast.translate.deps.policy_summary import Level
from edgefast.translate.match.precedence import Age, age_order, match_order
from edgefast.translate.report.foreign_annotations import report_annotations
from edgefast.translate.report.report import Report
from edgefast.translate.route.attachment import attach_route
from edgefast.translate.route.backend_policy import find_below
from edgefast.translate.route.fail_closed import close_rules
from edgefast.translate.route.outcome import (
    ADDRESSES,
    RouteOutcome,
    RoutePart,
    check_unsupported,
    compute_parent_status,
    settle,
)
from edgefast.translate.route.rule import RuleOutcome, translate_rule
from edgefast.translate.route.rule_order import read_order
from edgefast.translate.route.rule_policies import apply_rule_policies


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
            closed = ADDRESSES
    if route.closed is None:
        check_unsupported(route, own, standalone=reader.settings.standalone)
    if not attachments and not reader.settings.standalone:
        return RouteOutcome(route=route, source=source, reads=reader.noted())
    certificates = dict.fromkeys(one.gateway.certificate for one, _ in attachments) or {"": None}
    excess = find_excess(route)
    order = read_order(route)
    rules = {
        certificate: [
            translate_rule(
                route,
                named,
                index,
                certificate,
                source,
                reader,
                report,
                excess=index in excess,
                disorder=order.wrong,
            )
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
    plain = {
        certificate: _part_of(key, age, outcomes, order.turns)
        for certificate, outcomes in rules.items()
    }
    own_policies = reader.attached(
        type(route).__name__, route.metadata.namespace, route.metadata.name
    )
    below = {certificate: find_below(one.clusters, reader) for certificate, one in plain.items()}
    parts: dict[tuple[str, tuple[Level, ...]], RoutePart] = {}
    counted: dict[str, None] = {}
    hosts: dict[tuple[str, str], RoutePart] = {}
    parents = []
    for attached, report in attachments:
        parents.append(compute_parent_status(route, attached, report, own, first, working, reader))
        for listener, hostnames in attached.listeners:
            shared = (attached.gateway.certificate, listener.policies)
            if shared not in parts:
                made = plain[shared[0]]
                if shared[1] or own_policies or below[shared[0]]:
                    made = apply_rule_policies(
                        made, route, shared[1], own_policies, below[shared[0]]
                    )
                parts[shared] = _keep_part(made, previous)
            part = parts[shared]
            if working:
                counted[listener.name] = None
            for hostname in hostnames if listener.served else ():
                hosts[listener.name, hostname] = part
    if hosts and route.metadata.annotations:
        report_annotations(route.metadata, own, reader.settings)
    problems = [problem for report in reports for problem in report.problems]
    return settle(
        route,
        source,
        reader,
        attachments,
        parents,
        counted,
        (*problems, *own.problems),
        hosts=hosts,
        used=(one.clusters for one in plain.values()),
    )


def _part_of(
    key: RouteKey, age: Age, outcomes: list[RuleOutcome], turns: tuple[int, ...]
) -> RoutePart:
    return RoutePart(
        key=key,
        age=age,
        rules=tuple(one.rule for one in outcomes),
        candidates=intern(
            tuple(
                (
                    match_order(
                        match,
                        one.widened.get(at),
                        one.characters.get(at),
                        turns[index] if turns else None,
                    ),
                    index,
                    at,
                    match,
                )
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
