"""Rejections: the Gateways and routes that belong to resources that proxies refused.

In: a fleet and its refused resources, with the proxies' messages.
Out: texts by Gateway and by route. The name of a resource identifies it: listeners and virtual
hosts contain the listener's name; clusters and secrets are found by their use.
Must never: raise for an unknown name; it belongs to an old table or to no object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from edgefast import ir
from edgefast.api.model.route_name import key_of

#: (namespace, name)
Key = tuple[str, str]


class Refusal(msgspec.Struct, frozen=True):
    """One resource that one proxy refused."""

    proxy: str
    type: str  # of table.shards.TYPES, or "commit"
    name: str
    reason: str


class Rejections(msgspec.Struct, frozen=True):
    """What to tell whom."""

    gateways: dict[Key, tuple[str, ...]] = {}
    routes: dict[Key, tuple[str, ...]] = {}  # by the keys of api/model/route_name.py


NO_REJECTIONS = Rejections()


def attribute_rejections(fleet: ir.Fleet, refusals: Iterable[Refusal]) -> Rejections:
    """Return the texts for each Gateway and each route, sorted; a text about a listener names it."""
    gateways: dict[Key, set[str]] = {}
    routes: dict[Key, set[str]] = {}
    for one in refusals:
        for listener, hosts in _concerned(fleet, one):
            namespace, name, section = listener.split("/", 2)
            message = f"{one.proxy}: {one.type} {one.name}: {one.reason}"
            prefix = f"listener {section}: " if one.type in ("listener", "secret") else ""
            gateways.setdefault((namespace, name), set()).add(prefix + message)
            for route in hosts:
                routes.setdefault(_split(route), set()).add(message)
    return Rejections(
        gateways={key: tuple(sorted(texts)) for key, texts in gateways.items()},
        routes={key: tuple(sorted(texts)) for key, texts in routes.items()},
    )


def _split(name: str) -> Key:
    return key_of(name)


def _concerned(fleet: ir.Fleet, refusal: Refusal) -> Iterator[tuple[str, set[str]]]:
    """Give each listener concerned, with the routes of it that are."""
    match refusal.type:
        case "virtual_host" | "fragment":
            for host in fleet.virtual_hosts:
                root = f"{host.listener}/{host.hostname}"
                if refusal.name == root or refusal.name.startswith(f"{root}#"):
                    yield host.listener, {rule.route for rule in host.rules}
        case "stream_route":
            for one in fleet.stream_routes:
                if refusal.name == f"{one.listener}/{one.hostname}":
                    yield one.listener, {one.route} - {""}
        case "cluster":
            for one in fleet.stream_routes:
                if any(share.cluster == refusal.name for share in one.backends):
                    yield one.listener, {one.route} - {""}
            asking = {
                unit.name
                for unit in fleet.policies
                if unit.ext_auth and refusal.name in _services_of(unit.ext_auth)
            }
            for host in fleet.virtual_hosts:
                users = {
                    rule.route
                    for rule in host.rules
                    if refusal.name in clusters_of(rule) or not asking.isdisjoint(rule.policies)
                }
                if users:
                    yield host.listener, users
            yield from _filtered_by(fleet, asking)
        case "policy":
            for host in fleet.virtual_hosts:
                users = {rule.route for rule in host.rules if refusal.name in rule.units()}
                if users:
                    yield host.listener, users
            yield from _filtered_by(fleet, {refusal.name})
        case "secret":
            for frontend in fleet.listeners:
                tls = frontend.tls
                if tls and refusal.name in (*tls.certificates, tls.client_ca):
                    yield frontend.name, set()
        case _:
            # A listener, or the table as a whole, or the store of limits: every listener, or the one.
            for frontend in fleet.listeners:
                if refusal.type != "listener" or frontend.name == refusal.name:
                    yield frontend.name, set()


def _filtered_by(fleet: ir.Fleet, units: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Give the listeners of which one of these is a filter."""
    for frontend in fleet.listeners:
        if not units.isdisjoint(frontend.filters):
            yield frontend.name, set()


def clusters_of(rule: ir.Rule) -> set[str]:
    """Return the names of the clusters that a rule sends to, or asks itself."""
    used = {one.cluster for one in rule.backends} | {one.cluster for one in rule.mirrors}
    for backend in rule.backends:
        used |= {one.cluster for one in backend.mirrors}
    return used | _services_of(rule.ext_auth) if rule.ext_auth else used


def _services_of(ext_auth: ir.ExtAuth) -> set[str]:
    return {one.cluster for one in ext_auth.backends}
