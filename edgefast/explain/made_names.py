"""Made names: gives objects that serve Ingresses the names of their counterparts in the other set of objects.

In: the fleet of one side, the fleet of the other. Out: the fleet with other names of listeners, clusters, policies and limits. edgefast makes
Gateways, routes and Backends for Ingresses under names that no file has; converted Ingresses have public names. Clients see neither.
Must never: rename an object of a file, or take two for one that differ in more than their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from edgefast import ir
from edgefast.api.model.origin import MARK
from edgefast.translate.translation import Translation

__all__ = ["has_made_objects", "is_made_route", "pair_names"]


def has_made_objects(translation: Translation) -> bool:
    """Tell whether edgefast has made objects for Ingresses."""
    return bool(translation.memo.expansion.origins)


def is_made_route(route: str) -> bool:
    """Tell whether a route, "namespace/name", serves an Ingress."""
    return MARK in route


def pair_names(fleet: ir.Fleet, other: ir.Fleet, translation: Translation) -> ir.Fleet:
    """Return a fleet whose made listeners, clusters and policies have the names of equal ones in the other fleet."""
    if not has_made_objects(translation):
        return fleet
    listeners = _pair_listeners(fleet, other, translation)
    clusters = _pair_clusters(fleet, other)
    fleet = msgspec.structs.replace(
        fleet, policies=tuple(_rename_service(one, clusters) for one in fleet.policies)
    )
    units, limits = _pair_units(fleet, other), _pair_limits(fleet, other)
    hosts = tuple(
        msgspec.structs.replace(
            host,
            listener=listeners.get(host.listener, host.listener),
            rules=tuple(_rename_parts(rule, clusters, units, limits) for rule in host.rules),
        )
        for host in fleet.virtual_hosts
    )
    return msgspec.structs.replace(
        fleet,
        listeners=tuple(
            msgspec.structs.replace(one, name=listeners.get(one.name, one.name))
            for one in fleet.listeners
        ),
        clusters=tuple(
            msgspec.structs.replace(one, name=clusters.get(one.name, one.name))
            for one in fleet.clusters
        ),
        virtual_hosts=hosts,
        stream_routes=tuple(
            _rename_stream(one, listeners, clusters, units) for one in fleet.stream_routes
        ),
        policies=tuple(
            {
                units.get(one.name, one.name): msgspec.structs.replace(
                    one, name=units.get(one.name, one.name)
                )
                for one in fleet.policies
            }.values()
        ),
    )


def _pair_listeners(
    fleet: ir.Fleet, other: ir.Fleet, translation: Translation
) -> Mapping[str, str]:
    origins = translation.memo.expansion.origins
    found: dict[str, str] = {}
    known = {one.name for one in fleet.listeners}
    free = {_place(one): one.name for one in other.listeners if one.name not in known}
    for one in fleet.listeners:
        namespace, gateway, _ = one.name.split("/", 2)
        if ("Gateway", namespace, gateway) in origins and _place(one) in free:
            found[one.name] = free.pop(_place(one))
    return found


def _place(one: ir.Listener) -> tuple[object, ...]:
    return one.port, one.protocol, one.hostname, one.addresses


def _pair_clusters(fleet: ir.Fleet, other: ir.Fleet) -> Mapping[str, str]:
    known = {one.name for one in fleet.clusters}
    free: dict[ir.Cluster, list[str]] = {}
    for one in other.clusters:
        if one.name not in known:
            free.setdefault(_content(one), []).append(one.name)
    found: dict[str, str] = {}
    for one in fleet.clusters:
        names = free.get(_content(one), []) if MARK in one.name else []
        if names:
            found[one.name] = names.pop(0)
    return found


def _content(one: ir.Cluster) -> ir.Cluster:
    """Return a cluster with its namespace in place of its name."""
    return msgspec.structs.replace(one, name="/".join(one.name.split("/")[:2]))


def _rename_stream(
    route: ir.StreamRoute,
    listeners: Mapping[str, str],
    clusters: Mapping[str, str],
    units: Mapping[str, str],
) -> ir.StreamRoute:
    backends = tuple(
        msgspec.structs.replace(one, cluster=clusters.get(one.cluster, one.cluster))
        for one in route.backends
    )
    listener = listeners.get(route.listener, route.listener)
    policies = tuple(units.get(one, one) for one in route.policies)
    traffic = tuple(units.get(one, one) for one in route.traffic)
    return msgspec.structs.replace(
        route, listener=listener, backends=backends, policies=policies, traffic=traffic
    )


def _rename_service(unit: ir.PolicyUnit, names: Mapping[str, str]) -> ir.PolicyUnit:
    """Return a unit with the names that the clusters of its services have in the other fleet."""
    unit = _rename_error_services(unit, names)
    check = unit.ext_auth
    if check is None or not any(one.cluster in names for one in check.backends):
        return unit
    backends = tuple(
        msgspec.structs.replace(one, cluster=names.get(one.cluster, one.cluster))
        for one in check.backends
    )
    check = msgspec.structs.replace(check, backends=backends)
    return msgspec.structs.replace(unit, ext_auth=check)


def _rename_error_services(unit: ir.PolicyUnit, names: Mapping[str, str]) -> ir.PolicyUnit:
    traffic = unit.traffic
    if traffic is None or not any(one.service is not None for one in traffic.override or ()):
        return unit
    override = tuple(
        one
        if one.service is None
        else msgspec.structs.replace(
            one,
            service=msgspec.structs.replace(
                one.service, cluster=names.get(one.service.cluster, one.service.cluster)
            ),
        )
        for one in traffic.override or ()
    )
    traffic = msgspec.structs.replace(traffic, override=override)
    return msgspec.structs.replace(unit, traffic=traffic)


def _pair_units(fleet: ir.Fleet, other: ir.Fleet) -> Mapping[str, str]:
    """Return the names of equal units, first those of the same Ingress; several units can get one name."""
    known = {one.name for one in fleet.policies}
    free: dict[ir.PolicyUnit, list[str]] = {}
    for one in other.policies:
        if one.name not in known:
            free.setdefault(_meaning(one), []).append(one.name)
    found: dict[str, str] = {}
    for one in fleet.policies:
        names = free.get(_meaning(one), []) if MARK in one.name else []
        own = one.name.partition(MARK)[0]
        same = (name for name in names if name.startswith((f"{own}#", f"{own}-")) or name == own)
        if names:
            found[one.name] = next(same, names[0])
    return found


def _meaning(one: ir.PolicyUnit) -> ir.PolicyUnit:
    """Return a unit with family, namespace and feature in place of its name."""
    policy, _, feature = one.name.partition("#")
    name = "/".join((*policy.split("/")[:2], feature))
    return msgspec.structs.replace(one, name=name, reason="")


def _pair_limits(fleet: ir.Fleet, other: ir.Fleet) -> Mapping[str, str]:
    """Return the names of equal limits, first those of the same Ingress; several limits can get one name."""
    ours = {one.name: one for one in _limits_of(fleet) if MARK in one.name}
    free: dict[ir.RateLimit, dict[str, None]] = {}
    for one in _limits_of(other) if ours else ():
        free.setdefault(_effect(one), {})[one.name] = None
    found: dict[str, str] = {}
    for name, one in ours.items():
        names = free.get(_effect(one), {})
        own = name.partition(MARK)[0]
        same = (each for each in names if each.startswith((f"{own}#", f"{own}-")))
        if names:
            found[name] = next(same, next(iter(names)))
    return found


def _limits_of(fleet: ir.Fleet) -> Iterator[ir.RateLimit]:
    for host in fleet.virtual_hosts:
        for rule in host.rules:
            yield from rule.rate_limits


def _effect(one: ir.RateLimit) -> ir.RateLimit:
    """Return a limit with its namespace and place in place of its name."""
    name = f"{one.name.partition('/')[0]}#{one.name.partition('#')[2]}"
    return msgspec.structs.replace(one, name=name, counter="")


def _rename_parts(
    rule: ir.Rule,
    names: Mapping[str, str],
    units: Mapping[str, str],
    limits: Mapping[str, str],
) -> ir.Rule:
    return msgspec.structs.replace(
        rule,
        backends=tuple(
            msgspec.structs.replace(one, cluster=names.get(one.cluster, one.cluster))
            for one in rule.backends
        ),
        mirrors=tuple(
            msgspec.structs.replace(one, cluster=names.get(one.cluster, one.cluster))
            for one in rule.mirrors
        ),
        policies=tuple(units.get(one, one) for one in rule.policies),
        traffic=tuple(units.get(one, one) for one in rule.traffic),
        rate_limits=tuple(
            msgspec.structs.replace(one, name=limits.get(one.name, one.name))
            for one in rule.rate_limits
        ),
    )
