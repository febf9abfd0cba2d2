"""Route rules: the settings of adopted policies as filters and fields of the rules of routes.

In: a snapshot, its adopted policies. Out: routes with the filter CORS, RateLimitFilters and `retry`, the filters themselves, and
problems. A rule's own field or filter of the Gateway API stays.
Must never: leave out a rate limit: a route with several parents gets the limits of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgefast.api.edge.ratelimitfilter import RateLimitFilter, RateLimitFilterSpec
from edgefast.api.gateway.grpcroute import GRPCRouteFilter, GRPCRouteRule, Route
from edgefast.api.gateway.httproute import (
    HTTPRoute,
    HTTPRouteRetry,
    HTTPRouteRule,
    HTTPRouteTimeouts,
)
from edgefast.api.gateway.httproutefilter import HTTPCORSFilter, HTTPRouteFilter
from edgefast.api.kinds import EDGE_GROUP, Object, ref_of
from edgefast.api.model.adopted import AdoptedSettings
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import LocalObjectReference
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.adoption.targets import Policy, TargetIndex

__all__ = ["MARK", "RouteEditor"]

#: Follows the name of an object that is made of an adopted policy.
MARK = ".Adopted"


def _settings(policy: Policy) -> AdoptedSettings:
    return policy.adopted.settings if policy.adopted is not None else AdoptedSettings()


class RouteEditor:
    """Places settings of policies on routes."""

    def __init__(
        self, snapshot: Snapshot, security: Iterable[Policy], traffic: Iterable[Policy]
    ) -> None:
        self._snapshot = snapshot
        self._security = TargetIndex(security, snapshot)
        self._traffic = TargetIndex(traffic, snapshot)
        self.objects: list[Object] = []
        self.problems: list[Problem] = []
        #: (kind, namespace, name) of a made object -> the policy that it is of.
        self.origins: dict[tuple[str, str, str], ObjectRef] = {}

    def edit_all(self) -> None:
        """Edit every route that a policy with such a setting applies to."""
        routes: list[Route] = [
            *self._snapshot.http_routes.values(),
            *self._snapshot.grpc_routes.values(),
        ]
        for route in routes:
            if route.closed is None:
                self._edit(route)

    def _edit(self, route: Route) -> None:
        rules: list[HTTPRouteRule | GRPCRouteRule] = [
            self._edit_rule(route, one) for one in route.spec.rules
        ]
        if any(new is not old for new, old in zip(rules, route.spec.rules, strict=True)):
            spec = msgspec.structs.replace(route.spec, rules=tuple(rules))
            self.objects.append(msgspec.structs.replace(route, spec=spec))

    def _edit_rule(
        self, route: Route, rule: HTTPRouteRule | GRPCRouteRule
    ) -> HTTPRouteRule | GRPCRouteRule:
        name = rule.name or ""
        limits, _ = self._traffic.find_for(
            route, name, lambda one: _settings(one).limits is not None
        )
        for policy in limits:
            ref = LocalObjectReference(
                group=EDGE_GROUP, kind="RateLimitFilter", name=self._limit(policy, route)
            )
            if isinstance(rule, HTTPRouteRule):
                added = HTTPRouteFilter(type="ExtensionRef", extension_ref=ref)
                rule = msgspec.structs.replace(rule, filters=(*rule.filters, added))
            else:
                other = GRPCRouteFilter(type="ExtensionRef", extension_ref=ref)
                rule = msgspec.structs.replace(rule, filters=(*rule.filters, other))
        if isinstance(route, HTTPRoute) and isinstance(rule, HTTPRouteRule):
            rule = self._add_cors(route, rule)
            rule = self._add_retry(route, rule)
        return rule

    def _add_cors(self, route: HTTPRoute, rule: HTTPRouteRule) -> HTTPRouteRule:
        policy = self._find_one(self._security, route, rule, "cors")
        cors = _settings(policy).cors if policy is not None else None
        if cors is None or any(one.cors is not None for one in rule.filters):
            return rule
        assert isinstance(cors, HTTPCORSFilter)
        added = HTTPRouteFilter(type="CORS", cors=cors)
        return msgspec.structs.replace(rule, filters=(added, *rule.filters))

    def _add_retry(self, route: HTTPRoute, rule: HTTPRouteRule) -> HTTPRouteRule:
        policy = self._find_one(self._traffic, route, rule, "retry")
        if policy is None or rule.retry is not None:
            return rule
        settings = _settings(policy)
        assert isinstance(settings.retry, HTTPRouteRetry)
        timeouts = rule.timeouts
        if settings.backend_request and (timeouts is None or timeouts.backend_request is None):
            timeouts = msgspec.structs.replace(
                timeouts or HTTPRouteTimeouts(), backend_request=settings.backend_request
            )
        return msgspec.structs.replace(rule, retry=settings.retry, timeouts=timeouts)

    def _find_one(
        self, index: TargetIndex, route: HTTPRoute, rule: HTTPRouteRule, setting: str
    ) -> Policy | None:
        """Return the policy of a setting that all listeners of a route share; a problem names others."""
        found, agree = index.find_for(
            route, rule.name or "", lambda one: getattr(_settings(one), setting) is not None
        )
        if not found or agree:
            return found[0] if found else None
        for policy in found:
            message = f"not applied to {ref_of(route)}: its listeners have different policies"
            hint = "target the route"
            problem = Problem(
                ref_of(policy), f"spec.{setting}", "NotSupported", message, hint, severity="warning"
            )
            if problem not in self.problems:
                self.problems.append(problem)
        return None

    def _limit(self, policy: Policy, route: Route) -> str:
        """Return the name of the RateLimitFilter of a policy in the namespace of a route."""
        namespace, owner = route.metadata.namespace, ref_of(policy)
        name = f"{owner.name}{MARK}"
        if owner.namespace != namespace:
            name = f"{owner.namespace}.{name}"
        key = ("RateLimitFilter", namespace, name)
        if key not in self.origins:
            limits = _settings(policy).limits
            assert isinstance(limits, RateLimitFilterSpec)
            self.origins[key] = owner
            metadata = ObjectMeta(
                name=name,
                namespace=namespace,
                creation_timestamp=policy.metadata.creation_timestamp,
            )
            self.objects.append(RateLimitFilter(metadata=metadata, spec=limits))
        return name
