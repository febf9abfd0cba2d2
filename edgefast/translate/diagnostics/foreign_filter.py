"""Foreign filter: filters of routes that name objects of other projects, such as a Middleware.

In: a snapshot. Out: a remark for each such object, at its place, with the equivalent in edgefast.
Rules that use it answer 500; the route's own problem reports that.
Must never: report that a rule is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefast.api.gateway.grpcroute import GRPCRouteFilter, GRPCRouteRule, Route
from edgefast.api.gateway.httproute import HTTPRouteRule
from edgefast.api.gateway.httproutefilter import HTTPRouteFilter
from edgefast.api.kinds import ref_of
from edgefast.api.migration.field_mappings import hint_at
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem

#: Problems of one snapshot.
_MOST = 100

_Name = tuple[str, str, str, str]  # group, kind, namespace, name


def find_foreign_filters(snapshot: Snapshot, *, adopt: bool) -> Iterator[Problem]:
    """Report each object that a filter of a route names and that nobody here reads."""
    known: dict[_Name, ForeignPolicy] = {
        (one.ref.group, one.ref.kind, one.ref.namespace, one.ref.name): one
        for one in snapshot.foreign_policies
        if one.fields
    }
    if not known:
        return
    reported: set[_Name] = set()
    for route, where, name in _name_filters(snapshot):
        policy = known.get(name)
        if policy is None or name in reported or len(reported) >= _MOST:
            continue
        reported.add(name)
        hint = hint_at(policy.ref.group, policy.ref.kind, policy.fields, adopt=adopt)
        message = f"{route} {where} refers to it and answers 500"
        yield Problem(policy.ref, "", "NotSupported", message, hint, policy.source, "warning")


def _name_filters(snapshot: Snapshot) -> Iterator[tuple[ObjectRef, str, _Name]]:
    routes: list[Route] = [*snapshot.http_routes.values(), *snapshot.grpc_routes.values()]
    for route in routes:
        namespace = route.metadata.namespace
        rules: Sequence[HTTPRouteRule | GRPCRouteRule] = route.spec.rules
        for number, rule in enumerate(rules):
            filters: Sequence[HTTPRouteFilter | GRPCRouteFilter] = rule.filters
            for at, one in enumerate(filters):
                ref = one.extension_ref
                if ref is not None:
                    where = f"spec.rules[{number}].filters[{at}]"
                    yield ref_of(route), where, (ref.group, ref.kind, namespace, ref.name)
