"""Route rules: the settings of adopted policies as filters and fields of the rules of routes.

In: a snapshot, its adopted policies. Out: routes with the filter CORS, RateLimitFilters and `retry`, the filters themselves,
problems, and policies that close rules. A rule's own field or filter of the Gateway API stays.
Must never: leave out a rate limit: a route with several parents gets the limits of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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
from edgefast.api.gateway.layer4_route import StreamRoute
from edgefast.api.kinds import EDGE_GROUP, Object, ref_of
from edgefast.api.migration.adoption.adopted_document import ENVOY_GROUP
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.migration.target import Target
from edgefast.api.model.adopted import AdoptedSettings
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import GATEWAY_GROUP, LocalObjectReference
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem, Source
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.adoption.targets import Policy, TargetIndex

__all__ = ["MARK", "RouteEditor"]

#: Follows the name of an object that is made of an adopted policy.
MARK = ".Adopted"
_NOWHERE = Source("", 0)
#: Fields of a policy that are no settings.
_BARE = {"targetRefs", "mergeType"}
#: Settings that are RateLimitFilters, and what their names have before the mark.
_LIMITS = {"global_limits": "", "local_limits": ".Local"}


def _settings(policy: Policy) -> AdoptedSettings:
    return policy.adopted.settings if policy.adopted is not None else AdoptedSettings()


def _has(setting: str) -> Callable[[Policy], bool]:
    return lambda one: getattr(_settings(one), setting) is not None


class RouteEditor:
    """Places settings of policies on routes."""

    def __init__(
        self, snapshot: Snapshot, security: Sequence[Policy], traffic: Sequence[Policy]
    ) -> None:
        self._snapshot = snapshot
        self._policies = (*security, *traffic)
        self._merging = any(one.adopted is not None and one.adopted.merges for one in security)
        self._security = TargetIndex(security, snapshot)
        self._traffic = TargetIndex(traffic, snapshot)
        self.objects: list[Object] = []
        self.problems: list[Problem] = []
        self._told: set[Problem] = set()
        self.closing: list[ForeignPolicy] = []
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
        streams: list[StreamRoute] = [
            *self._snapshot.tls_routes.values(),
            *self._snapshot.tcp_routes.values(),
            *self._snapshot.udp_routes.values(),
        ]
        for stream in streams if self._merging else ():
            self._close_merging(stream, "")
        for policy in self._policies:
            first = (self._security.unused | self._traffic.unused).get(ref_of(policy))
            if first is not None and _settings(policy) != AdoptedSettings():
                message = f"not applied: {first} has the same target and is older"
                self._warn(
                    policy, "spec.targetRefs", message, "merge the two policies", "Conflicted"
                )

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
        if self._merging:
            self._close_merging(route, name)
        limits = [
            self._limit(policy, route, part)
            for part in _LIMITS
            for policy in self._traffic.find_for(route, name, _has(part))[0]
        ]
        for filter_name in limits:
            ref = LocalObjectReference(group=EDGE_GROUP, kind="RateLimitFilter", name=filter_name)
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
        found, agree = index.find_for(route, rule.name or "", _has(setting))
        if not found or agree:
            return found[0] if found else None
        for policy in found:
            message = f"not applied to {ref_of(route)}: its listeners have different policies"
            hint = "target the route"
            self._warn(policy, f"spec.{setting}", message, hint)
        return None

    def _close_merging(self, route: Route | StreamRoute, rule: str) -> None:
        """Close a route whose policy merges with one above it inside a field, because here the field replaces the other."""
        for policy, above in self._security.list_parents(route, rule):
            if policy.adopted is None or not policy.adopted.merges:
                continue
            mine, other = (msgspec.to_builtins(one.spec) for one in (policy, above))
            names = tuple(sorted(_find_lost(mine, other)))
            if not names:
                continue
            message = f"not merged with {', '.join(names)} of {ref_of(above)} for {ref_of(route)}"
            hint = "write the fields of both policies into it"
            ref = msgspec.structs.replace(ref_of(policy), group=ENVOY_GROUP)
            problem = Problem(ref_of(policy), "spec.mergeType", "NotSupported", message, hint)
            if not self._tell(problem):
                continue
            source = self._snapshot.source_of(ref_of(policy)) or _NOWHERE
            kind, meta = type(route).__name__, route.metadata
            target = Target(("spec", "targetRefs"), GATEWAY_GROUP, kind, meta.namespace, meta.name)
            self.closing.append(
                ForeignPolicy(ref, ((target, source),), source=source, access_policies=names)
            )

    def _warn(
        self, policy: Policy, path: str, message: str, hint: str, reason: Word = "NotSupported"
    ) -> None:
        problem = Problem(ref_of(policy), path, reason, message, hint, severity="warning")
        self._tell(problem)

    def _tell(self, problem: Problem) -> bool:
        """Report a problem, unless it is reported."""
        if problem in self._told:
            return False
        self._told.add(problem)
        self.problems.append(problem)
        return True

    def _limit(self, policy: Policy, route: Route, part: str) -> str:
        """Return the name of the RateLimitFilter of a part of a policy in the namespace of a route."""
        namespace, owner = route.metadata.namespace, ref_of(policy)
        name = f"{owner.name}{_LIMITS[part]}{MARK}"
        if owner.namespace != namespace:
            name = f"{owner.namespace}.{name}"
        key = ("RateLimitFilter", namespace, name)
        if key not in self.origins:
            limits = getattr(_settings(policy), part)
            assert isinstance(limits, RateLimitFilterSpec)
            self.origins[key] = owner
            metadata = ObjectMeta(
                name=name,
                namespace=namespace,
                creation_timestamp=policy.metadata.creation_timestamp,
            )
            self.objects.append(RateLimitFilter(metadata=metadata, spec=limits))
        return name


def _find_lost(mine: Mapping[str, Any], above: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that both policies set, with a part that only the one above has."""
    for name in mine.keys() & above.keys() - _BARE:
        if _lacks(mine[name], above[name]):
            yield name


def _lacks(mine: object, above: object) -> bool:
    if not isinstance(mine, dict) or not isinstance(above, dict):
        return False
    return any(name not in mine or _lacks(mine[name], part) for name, part in above.items())
