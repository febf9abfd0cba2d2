"""Foreign filters: objects of other projects that filters of routes name, such as a Middleware, and what of them is here.

In: a snapshot. Out: a remark for each such object, at its place: its rules answer 500, which the route's own problem says.
Must never: say that a rule is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefast.problem import ObjectRef, Problem
from edgefast.resources.foreign.counterparts import hint_at
from edgefast.resources.foreign.foreignpolicy import ForeignPolicy
from edgefast.resources.gatewayapi.grpcroute import GRPCRouteFilter, GRPCRouteRule, Route
from edgefast.resources.gatewayapi.httproute import HTTPRouteRule
from edgefast.resources.gatewayapi.httproutefilter import HTTPRouteFilter
from edgefast.resources.kinds import ref_of
from edgefast.resources.snapshot import Snapshot

#: Problems of one snapshot.
_MOST = 100

_Name = tuple[str, str, str, str]  # group, kind, namespace, name


def find_foreign_filters(snapshot: Snapshot) -> Iterator[Problem]:
    """Report each object that a filter of a route names and that nobody here reads."""
    known: dict[_Name, ForeignPolicy] = {
        (one.ref.group, one.ref.kind, one.ref.namespace, one.ref.name): one
        for one in snapshot.foreign_policies
        if one.fields
    }
    if not known:
        return
    told: set[_Name] = set()
    for route, where, name in _name_filters(snapshot):
        policy = known.get(name)
        if policy is None or name in told or len(told) >= _MOST:
            continue
        told.add(name)
        hint = hint_at(policy.ref.group, policy.ref.kind, policy.fields)
        said = f"{route} {where} refers to it and answers 500"
        yield Problem(policy.ref, "", "NotSupported", said, hint, policy.source, "warning")


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
