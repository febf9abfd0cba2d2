"""Assembly: virtual hosts, clusters and secrets sorted into the fleets that serve them.

In: the Gateways, hosts and clusters of a translation. Out: ir.IR, sorted, the same for the same
objects whatever came before; a fleet equal to its predecessor keeps its identity.
Must never: put a cluster or a secret into a fleet that does not use it: a fleet's proxies may read
all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgefast import ir
from edgefast.translate.cluster import Clusters
from edgefast.translate.clusterref import ClusterRef
from edgefast.translate.fleet import STANDALONE, join_secrets, translate_infra
from edgefast.translate.gateway import GatewayDraft
from edgefast.translate.settings import Settings
from edgefast.translate.virtualhost import Hosts


def assemble_fleets(
    drafts: Sequence[GatewayDraft],
    hosts: Hosts,
    clusters: Clusters,
    limit_store: ir.RateLimitStore | None,
    settings: Settings,
    previous: ir.IR | None,
) -> tuple[ir.IR, tuple[ir.Infra, ...]]:
    """Return all fleets by name, with what each needs around it."""
    members: dict[str, list[GatewayDraft]] = {}
    for draft in drafts:
        if draft.accepted:
            members.setdefault(draft.fleet, []).append(draft)
    fleet_of = {
        one.name: draft.fleet
        for group in members.values()
        for draft in group
        for one in draft.listeners
    }
    placed: dict[str, list[tuple[str, str]]] = {name: [] for name in members}
    for place in sorted(hosts.outcomes):
        placed[fleet_of[place[0]]].append(place)
    old = {fleet.name: fleet for fleet in previous.fleets} if previous else {}
    fleets = []
    for name in sorted(members):
        fleet = _assemble(name, members[name], placed[name], hosts, clusters, limit_store)
        before = old.get(name)
        fleets.append(before if before is not None and _is_same(before, fleet) else fleet)
    if settings.standalone and not fleets:
        fleets.append(ir.Fleet(name=STANDALONE))
    infra = tuple(translate_infra(members[name], settings) for name in sorted(members))
    return ir.IR(fleets=tuple(fleets)), infra


def _assemble(
    name: str,
    members: list[GatewayDraft],
    places: list[tuple[str, str]],
    hosts: Hosts,
    clusters: Clusters,
    limit_store: ir.RateLimitStore | None,
) -> ir.Fleet:
    used: set[ClusterRef] = set()
    for place in places:
        used |= hosts.outcomes[place].clusters
    found = [clusters.get(ref) for ref in sorted(used, key=lambda ref: ref.id)]
    served = [(draft, one) for draft in members for one in draft.listeners if one.served]
    listeners = [
        one.listener(draft.http_of_port.get(one.port, draft.http), draft.access_log)
        for draft, one in served
    ]
    secrets = [secret for outcome in found for secret in outcome.secrets]
    for _, one in served:
        secrets += one.tls.secrets if one.tls else ()
    limited = any(hosts.outcomes[place].limited for place in places)
    return ir.Fleet(
        name=name,
        listeners=tuple(sorted(listeners, key=lambda one: one.name)),
        virtual_hosts=tuple(hosts.outcomes[place].host for place in places),
        clusters=tuple(outcome.cluster for outcome in found),
        secrets=join_secrets(secrets),
        limit_store=limit_store if limited else None,
    )


def _is_same(one: ir.Fleet, other: ir.Fleet) -> bool:
    """Compare by identity where it is kept, by value where things are made anew each time."""
    return (
        _are_same(one.virtual_hosts, other.virtual_hosts)
        and _are_same(one.clusters, other.clusters)
        and one.listeners == other.listeners
        and one.secrets == other.secrets
        and one.limit_store == other.limit_store
    )


def _are_same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
