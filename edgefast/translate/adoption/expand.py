"""Expand: a snapshot with adopted objects -> the same with their settings on routes and Gateways.

In: a snapshot, settings, the previous adoption. Out: an `Adoption`. Without `--adopt`, or without an adopted object, it is the
snapshot itself. Objects that come out as before are the same objects, so that the pipeline translates only what changed.
Must never: depend on the previous adoption in what it returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter, is_

import msgspec

from edgefast.api.kinds import Object, ref_of
from edgefast.api.loaded import Loaded
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.adoption.gateway_settings import GatewayEditor
from edgefast.translate.adoption.route_rules import RouteEditor
from edgefast.translate.adoption.targets import resolve_selectors
from edgefast.translate.settings import Settings

__all__ = ["Adoption", "expand_adopted"]

_Name = tuple[str, str, str]
#: What an adoption reads: objects that policies name, by label or by name, and the policies.
_READ = attrgetter(
    "gateway_classes",
    "gateways",
    "http_routes",
    "grpc_routes",
    "tls_routes",
    "tcp_routes",
    "udp_routes",
    "listener_sets",
    "namespaces",
    "services",
    "backends",
    "x_backends",
    "edge_proxies",
    "security_policies",
    "backend_traffic_policies",
)


class Adoption(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A snapshot with the settings of adopted policies."""

    base: Snapshot
    snapshot: Snapshot
    made: Mapping[_Name, Object] = {}  # objects that are new or changed
    removed: tuple[ObjectRef, ...] = ()
    closing: tuple[ForeignPolicy, ...] = ()
    problems: tuple[Problem, ...] = ()
    origins: Mapping[_Name, ObjectRef] = {}  # of new objects: the policy

    def place(self, problem: Problem) -> Problem | None:
        """Return a problem of a made object as one of its policy; None: it follows from what is reported there."""
        ref = problem.object
        owner = self.origins.get((ref.kind, ref.namespace, ref.name)) if ref is not None else None
        if owner is None:
            return problem
        if problem.severity != "error":
            return None
        return msgspec.structs.replace(problem, object=owner, path="spec")


def expand_adopted(snapshot: Snapshot, settings: Settings, previous: Adoption | None) -> Adoption:
    """Place the settings of adopted policies."""
    if not settings.adopt:
        return Adoption(base=snapshot, snapshot=snapshot)
    if (
        previous is not None
        and all(map(is_, _READ(snapshot), _READ(previous.base)))
        and _list_refused(snapshot) == _list_refused(previous.base)
    ):
        if snapshot is previous.base:
            return previous
        return _apply(snapshot, previous)
    return _apply(snapshot, _make(snapshot, previous))


def _list_refused(snapshot: Snapshot) -> set[_Name]:
    """Return the names of EnvoyProxies with an error."""
    return {one for one in snapshot.refused if one[0] == "EnvoyProxy"}


def _make(snapshot: Snapshot, previous: Adoption | None) -> Adoption:
    security = [one for one in snapshot.security_policies.values() if one.adopted is not None]
    traffic = [one for one in snapshot.backend_traffic_policies.values() if one.adopted is not None]
    resolved_security = [resolve_selectors(one, snapshot) for one in security]
    resolved_traffic = [resolve_selectors(one, snapshot) for one in traffic]
    routes = RouteEditor(snapshot, resolved_security, resolved_traffic)
    if security or traffic:
        routes.edit_all()
    gateways = GatewayEditor(snapshot)
    gateways.edit_all()
    pairs = zip((*security, *traffic), (*resolved_security, *resolved_traffic), strict=True)
    changed: list[Object] = [new for old, new in pairs if new is not old]
    changed += [*routes.objects, *gateways.objects]
    before = previous.made if previous is not None else {}
    made: dict[_Name, Object] = {}
    for one in changed:
        ref = ref_of(one)
        name = (ref.kind, ref.namespace, ref.name)
        old = before.get(name)
        made[name] = old if old is not None and old == one else one
    return Adoption(
        base=snapshot,
        snapshot=snapshot,
        made=made,
        removed=tuple(gateways.removed),
        closing=(*routes.closing, *gateways.closing),
        problems=(*routes.problems, *gateways.problems),
        origins={**routes.origins, **gateways.origins},
    )


def _apply(snapshot: Snapshot, made: Adoption) -> Adoption:
    """Return an adoption with its objects in a snapshot; they keep the places of the objects that they replace."""
    after = snapshot
    if made.made or made.removed:
        items: list[Loaded | Object] = []
        for one in made.made.values():
            ref = ref_of(one)
            loaded = snapshot.loaded.get((ref.kind, ref.namespace, ref.name))
            items.append(msgspec.structs.replace(loaded, obj=one) if loaded is not None else one)
        after = snapshot.replace(items, made.removed)
    if made.closing:
        policies = (*snapshot.foreign_policies, *made.closing)
        after = msgspec.structs.replace(after, foreign_policies=policies)
    return msgspec.structs.replace(made, base=snapshot, snapshot=after)
