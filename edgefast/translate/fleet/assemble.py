"""Assemble: sorts virtual hosts, clusters and secrets into the fleets that serve them.

In: the Gateways, hosts and clusters of a translation.
Out: ir.IR, sorted, the same for the same objects whatever came before; a fleet equal to its
predecessor keeps its identity.
Must never: put a cluster or a secret into a fleet that does not use it: a fleet's proxies may read
all of it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import is_

from edgefast import ir
from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import Values, find_unlike, values_of
from edgefast.translate.backend.cluster import Clusters
from edgefast.translate.filter.listener_filter import ListenerFilters
from edgefast.translate.fleet.fleet import STANDALONE, join_secrets
from edgefast.translate.fleet.fleet_cache import FleetCache, FleetCaches, update_caches
from edgefast.translate.fleet.infra import translate_infra
from edgefast.translate.fleet.members import FleetMembers, Placed, find_members
from edgefast.translate.fleet.proxies import collect_proxies
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft
from edgefast.translate.policy.edge_policies import EdgePolicies
from edgefast.translate.settings import Settings
from edgefast.translate.virtual_host.layer4 import Streams
from edgefast.translate.virtual_host.virtual_host import Hosts, Place


def assemble_fleets(
    drafts: Sequence[GatewayDraft],
    hosts: Hosts,
    streams: Streams,
    clusters: Clusters,
    policies: EdgePolicies,
    filters: ListenerFilters,
    limit_store: ir.RateLimitStore | None,
    settings: Settings,
    previous: ir.IR | None,
    known: Sequence[ir.Infra] | None,
    caches: FleetCaches,
    slices: Mapping[Key, tuple[EndpointSlice, ...]],
) -> tuple[ir.IR, tuple[ir.Infra, ...], FleetCaches]:
    """Return all fleets by name, with what each needs around it; `caches` are those of `previous`.

    `known`: what was needed around the fleets of `previous`, when the Gateways are the very same ones. `slices`: EndpointSlices by
    Service, among which are the fleets' own.
    """
    grouped = find_members(drafts, caches.grouped)
    members, before_caches = grouped.members, caches.by_fleet
    caches = _refill(caches, grouped, hosts, streams, clusters, policies, filters)
    old = {fleet.name: fleet for fleet in previous.fleets} if previous else {}
    fleets = []
    around = known or [translate_infra(members[name], settings) for name in sorted(members)]
    for infra, name in zip(around, sorted(members), strict=True):
        before = old.get(name)
        cache, old_cache = caches.by_fleet[name], before_caches.get(name)
        secrets: tuple[ir.Secret, ...] | None = None
        if before is not None and known is not None:
            listeners = before.listeners
            if old_cache is not None and old_cache.secrets is cache.secrets:
                secrets = before.secrets
        else:
            listeners = _list_listeners(grouped.placed[name], grouped.held.get(name, ()))
        if secrets is None:
            found = chain.from_iterable(cache.secrets.values())
            secrets = join_secrets((*found, *grouped.secrets[name]))
        beside = collect_proxies(slices.get((infra.namespace, name), ())) if cache.zoned else None
        fleet = _assemble(name, listeners, secrets, cache, limit_store, beside)
        fleets.append(before if before is not None and _is_same(before, fleet) else fleet)
    if settings.standalone and not fleets:
        fleets.append(ir.Fleet(name=STANDALONE))
    return ir.IR(fleets=tuple(fleets)), tuple(around), caches


def _refill(
    caches: FleetCaches,
    grouped: FleetMembers,
    hosts: Hosts,
    streams: Streams,
    clusters: Clusters,
    policies: EdgePolicies,
    filters: ListenerFilters,
) -> FleetCaches:
    touched: Iterable[Place] = chain(hosts.touched, streams.touched)
    fleet_of, known = grouped.fleet_of, caches.grouped.fleet_of
    if known is not fleet_of and known != fleet_of:
        caches, touched = FleetCaches(), chain(hosts.outcomes, streams.outcomes)
    placed: dict[str, list[Place]] = {name: [] for name in grouped.members}
    for place in touched:
        placed[fleet_of[place[0]]].append(place)
    units = ChainMap(dict(filters.units), policies.units) if filters.units else policies.units  # type: ignore[arg-type]
    edited = policies.touched | filters.touched
    by_fleet = {
        name: update_caches(
            caches.by_fleet.get(name, FleetCache()),
            places,
            hosts.outcomes,
            streams.outcomes,
            clusters.touched,
            clusters.outcomes,
            edited,
            units,
            grouped.filters.get(name, frozenset()),
        )
        for name, places in placed.items()
    }
    return FleetCaches(grouped=grouped, by_fleet=by_fleet)


def _list_listeners(
    placed: Sequence[Placed], held: Sequence[ListenerDraft]
) -> tuple[ir.Listener, ...]:
    listeners = {
        one.name: one.listener(
            draft.http_of_port.get(one.place, draft.parameters.http),
            draft.stream_of_port.get(one.place, draft.parameters.stream),
            draft.parameters.access_log,
            draft.parameters.tracing,
        )
        for draft, one in placed
    }
    for one in held:
        assert one.held_by is not None
        port = listeners[one.held_by.name]
        listeners[one.name] = one.listener(port.http, port.stream, port.access_log, port.tracing)
    return tuple(listeners[at] for at in sorted(listeners))


def _assemble(
    name: str,
    listeners: tuple[ir.Listener, ...],
    secrets: tuple[ir.Secret, ...],
    cache: FleetCache,
    limit_store: ir.RateLimitStore | None,
    proxies: ir.Proxies | None,
) -> ir.Fleet:
    return ir.Fleet(
        name=name,
        listeners=listeners,
        virtual_hosts=values_of(cache.hosts),
        stream_routes=values_of(cache.streams),
        clusters=values_of(cache.clusters),
        secrets=secrets,
        policies=values_of(cache.policies),
        limit_store=limit_store if cache.limited else None,
        proxies=proxies,
    )


def _is_same(one: ir.Fleet, other: ir.Fleet) -> bool:
    """Compare by identity where it is kept, by value where things are made anew each time."""
    return (
        _are_same(one.virtual_hosts, other.virtual_hosts)
        and _are_same(one.stream_routes, other.stream_routes)
        and _are_same(one.clusters, other.clusters)
        and one.listeners == other.listeners
        and one.secrets == other.secrets
        and _are_same(one.policies, other.policies)
        and one.limit_store == other.limit_store
        and one.proxies == other.proxies
    )


def _are_same(one: Sequence[object], other: Sequence[object]) -> bool:
    if isinstance(one, Values) and isinstance(other, Values):
        return not any(find_unlike(one.map, other.map))
    return len(one) == len(other) and all(map(is_, one, other))
