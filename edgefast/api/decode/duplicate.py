"""Duplicate: of two objects of one name in files the first is served; what only the other one covers is closed.

In: a valid object with a duplicate name, and the first one.
Out: a placeholder that closes its hostnames and targets, under a name of its own ("name?2"). None
where it has none, or none that the first one does not have as well.
Must never: take anything from the object that is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from edgefast.api.decode.fail_closed.policy import OwnPolicy
from edgefast.api.decode.fail_closed.readable import NAMELESS
from edgefast.api.edge.policy_target import WHOLE, PolicyTarget, PolicyTargetReference
from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicy
from edgefast.api.gateway.gateway import Gateway, GatewaySpec
from edgefast.api.gateway.grpcroute import GRPCRoute, GRPCRouteMatch, GRPCRouteRule
from edgefast.api.gateway.httproute import HTTPRoute, HTTPRouteMatch, HTTPRouteRule
from edgefast.api.gateway.layer4_route import (
    AnyRoute,
    StreamRoute,
    StreamRouteSpec,
    TCPRoute,
    TLSRoute,
    TLSRouteSpec,
    UDPRoute,
)
from edgefast.api.gateway.listener import AllowedRoutes, Listener, RouteNamespaces
from edgefast.api.gateway.listenerset import ListenerSet, ListenerSetSpec
from edgefast.api.gateway.xbackendtrafficpolicy import BackendTarget
from edgefast.api.loaded import Loaded
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.migration.target import Target
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.reference import GATEWAY_GROUP

__all__ = ["close_duplicate", "policy_of_duplicate", "rename_duplicate", "rename_policy"]

_ANY_ROUTES = AllowedRoutes(namespaces=RouteNamespaces(from_="All"))


def close_duplicate(item: Loaded, first: Loaded, number: int) -> Loaded | None:
    """Return what keeps the place of `item` closed, the `number`th of its name, while `first` is served."""
    obj, winner = item.obj, first.obj
    made: AnyRoute | Gateway | ListenerSet | OwnPolicy | None = None
    if isinstance(obj, HTTPRoute) and isinstance(winner, HTTPRoute):
        made = _close_route(obj, winner, HTTPRouteMatch())
    elif isinstance(obj, GRPCRoute) and isinstance(winner, GRPCRoute):
        made = _close_route(obj, winner, GRPCRouteMatch())
    elif isinstance(obj, TLSRoute | TCPRoute | UDPRoute) and type(obj) is type(winner):
        made = _close_stream(obj, winner)
    elif isinstance(obj, Gateway) and isinstance(winner, Gateway):
        same_class = obj.spec.gateway_class_name == winner.spec.gateway_class_name
        if listeners := _left(obj.spec.listeners, winner.spec.listeners if same_class else ()):
            spec = GatewaySpec(gateway_class_name=obj.spec.gateway_class_name, listeners=listeners)
            made = Gateway(metadata=obj.metadata, spec=spec)
    elif isinstance(obj, ListenerSet) and isinstance(winner, ListenerSet):
        same = obj.spec.parent_ref == winner.spec.parent_ref
        if listeners := _left(obj.spec.listeners, winner.spec.listeners if same else ()):
            sets = ListenerSetSpec(parent_ref=obj.spec.parent_ref, listeners=listeners)
            made = ListenerSet(metadata=obj.metadata, spec=sets)
    elif isinstance(obj, OwnPolicy) and isinstance(winner, OwnPolicy):
        made = _close_policy(obj, winner)
    if made is None:
        return None
    message = f'Duplicate "{obj.metadata.name}" (first defined at {first.source})'
    # The youngest of all: of equal ones whatever is served comes first.
    meta = msgspec.structs.replace(obj.metadata, name=_name(item, number), creation_timestamp="")
    closed = Closed("metadata.name", message, cause="while another object has its name")
    return Loaded(
        msgspec.structs.replace(made, metadata=meta, closed=closed), item.file, item.marks
    )


def rename_duplicate(item: Loaded, number: int) -> Loaded:
    """Return an object under the name of the `number`th that has its own."""
    meta = msgspec.structs.replace(item.obj.metadata, name=_name(item, number))
    return Loaded(msgspec.structs.replace(item.obj, metadata=meta), item.file, item.marks)


def policy_of_duplicate(item: Loaded, number: int) -> ForeignPolicy | None:
    """Return what keeps the Services of a second BackendTLSPolicy of a name from plain text."""
    obj = item.obj
    if not isinstance(obj, BackendTLSPolicy):
        return None
    namespace = obj.metadata.namespace
    targets = tuple(
        (
            Target(
                path=("spec", "targetRefs", at),
                group=one.group,
                kind=one.kind,
                namespace=namespace,
                name=one.name,
                section=one.section_name or "",
            ),
            item.source_at(f"spec.targetRefs[{at}]"),
        )
        for at, one in enumerate(obj.spec.target_refs)
    )
    return ForeignPolicy(msgspec.structs.replace(item.ref, name=_name(item, number)), targets)


def rename_policy(policy: ForeignPolicy, number: int) -> ForeignPolicy:
    """Return a BackendTLSPolicy with an error under the name of the `number`th that has its own; others are as they are."""
    if (policy.ref.group, policy.ref.kind) != (GATEWAY_GROUP, BackendTLSPolicy.__name__):
        return policy
    ref = msgspec.structs.replace(policy.ref, name=f"{policy.ref.name}{NAMELESS}{number}")
    return msgspec.structs.replace(policy, ref=ref)


def _name(item: Loaded, number: int) -> str:
    return f"{item.obj.metadata.name}{NAMELESS}{number}"


_R = TypeVar("_R", HTTPRoute, GRPCRoute)
_Match = HTTPRouteMatch | GRPCRouteMatch


def _close_route(route: _R, winner: _R, every: _Match) -> _R | None:
    """`every`: the match of a rule without any."""
    spec, other = route.spec, winner.spec
    beside = (spec.parent_refs, spec.hostnames) == (other.parent_refs, other.hostnames)
    there = {one for rule in other.rules for one in _matches(rule, every)} if beside else set()
    rules = tuple(
        type(rule)(matches=left)  # type: ignore[arg-type]
        for rule in spec.rules
        for left in (tuple(one for one in _matches(rule, every) if one not in there),)
        if left
    )
    if not rules:
        return None
    made = type(spec)(parent_refs=spec.parent_refs, hostnames=spec.hostnames, rules=rules)
    return type(route)(metadata=route.metadata, spec=made)


def _close_stream(route: StreamRoute, winner: Any) -> StreamRoute | None:
    """Return the server names, or the listeners, that the first one of the name has not."""
    same = route.spec.parent_refs == winner.spec.parent_refs
    if not isinstance(route, TLSRoute):
        spec = StreamRouteSpec(parent_refs=route.spec.parent_refs, rules=())
        return None if same else type(route)(metadata=route.metadata, spec=spec)
    names = route.spec.hostnames
    left = tuple(one for one in names if not same or one not in winner.spec.hostnames)
    if (names and not left) or (not names and same and not winner.spec.hostnames):
        return None
    named = TLSRouteSpec(parent_refs=route.spec.parent_refs, hostnames=left, rules=())
    return TLSRoute(metadata=route.metadata, spec=named)


def _matches(rule: HTTPRouteRule | GRPCRouteRule, every: _Match) -> tuple[_Match, ...]:
    return rule.matches or (every,)


def _close_policy(policy: OwnPolicy, winner: OwnPolicy) -> OwnPolicy | None:
    """Return what closes all targets of a policy, None for a copy."""
    if (policy.spec, policy.aimed) == (winner.spec, winner.aimed):
        return None
    refs: Sequence[PolicyTargetReference | BackendTarget] = policy.spec.target_refs
    aimed = tuple(
        PolicyTarget(
            path=("spec", "targetRefs", at),
            kind=one.kind,
            name=one.name,
            section="" if type(policy).__name__ in WHOLE else one.section_name or "",
        )
        for at, one in enumerate(refs)
    )
    spec: Any = type(policy.spec)(target_refs=())
    return type(policy)(metadata=policy.metadata, spec=spec, aimed=(*aimed, *policy.aimed))


def _left(listeners: tuple[Listener, ...], others: tuple[Listener, ...]) -> tuple[Listener, ...]:
    there = {(one.port, one.hostname) for one in others}
    return tuple(
        Listener(
            name=one.name,
            port=one.port,
            protocol=one.protocol,
            hostname=one.hostname,
            allowed_routes=_ANY_ROUTES,
        )
        for one in listeners
        if (one.port, one.hostname) not in there
    )
