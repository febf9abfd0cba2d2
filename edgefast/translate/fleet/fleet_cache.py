"""Fleet cache: the virtual hosts, streams, policy units and clusters of one fleet, between translations.

In: the previous cache, and which of its entries changed. Out: the next cache; its cost is
proportional to the changes.
Must never: differ from a cache that is built from nothing with the same hosts and clusters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

import msgspec

from edgefast import ir
from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap
from edgefast.translate.backend.cluster import ClusterOutcome
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.intern import intern
from edgefast.translate.fleet.backend_policies import BackendPolicies, Ways, list_backend_policies
from edgefast.translate.fleet.members import FleetMembers
from edgefast.translate.fleet.proxies import wants_zones
from edgefast.translate.policy.outcome import UnitOutcome
from edgefast.translate.virtual_host.layer4 import StreamOutcome
from edgefast.translate.virtual_host.virtual_host import BackendPolicy, HostOutcome, Place

Outcome = HostOutcome | StreamOutcome
_T = TypeVar("_T")


class FleetCache(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one fleet is assembled of; never changed after it was made."""

    outcomes: SortedMap[Place, Outcome] = EMPTY
    hosts: SortedMap[Place, ir.VirtualHost] = EMPTY  # of `outcomes`
    streams: SortedMap[Place, ir.StreamRoute] = EMPTY  # the others of them
    clusters: SortedMap[str, ir.Cluster] = EMPTY  # by id
    uses: SortedMap[ClusterRef, int] = EMPTY  # hosts, places and units that use a cluster
    secrets: SortedMap[ClusterRef, tuple[ir.Secret, ...]] = EMPTY  # of clusters that have any
    limited: int = 0  # hosts with rate limits
    policies: SortedMap[str, ir.PolicyUnit] = EMPTY  # units that hosts and listeners name, by name
    asked: SortedMap[str, tuple[ClusterRef, ...]] = EMPTY  # clusters of units that ask any
    policy_uses: SortedMap[str, int] = EMPTY  # hosts and listeners that name a unit
    filters: frozenset[str] = frozenset()  # units that listeners name
    treated: SortedMap[BackendPolicy, int] = EMPTY  # hosts whose rules treat a cluster so
    checking: frozenset[str] = frozenset()  # units with a check of health
    crowded: frozenset[ClusterRef] = frozenset()  # clusters whose treatments depend on these
    varied: frozenset[ClusterRef] = frozenset()  # those that could have more checks than are made
    unmade: Mapping[ClusterRef, tuple[str, ...]] = {}  # units whose check of a cluster is not made
    zoned: int = 0  # units and clusters that make zones count


class FleetCaches(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all fleets; they hold as long as the fleets have the same listeners."""

    grouped: FleetMembers = FleetMembers()
    by_fleet: Mapping[str, FleetCache] = {}


def update_caches(
    cache: FleetCache,
    touched: Collection[Place],
    hosts: SortedMap[Place, HostOutcome],
    streams: SortedMap[Place, StreamOutcome],
    changed: Collection[ClusterRef],
    clusters: SortedMap[ClusterRef, ClusterOutcome],
    edited: Collection[str],
    units: Mapping[str, UnitOutcome],
    filters: frozenset[str],
) -> FleetCache:
    """Return the fleet cache with these hosts and streams, and these clusters and units if they are used, as they are now.

    `filters`: all units that listeners of the fleet name.
    """
    if not touched and not changed and not edited and filters == cache.filters:
        return cache
    outcomes, served, uses = cache.outcomes.edit(), cache.hosts.edit(), cache.uses.edit()
    passed = cache.streams.edit()
    limited, policy_uses = cache.limited, cache.policy_uses.edit()
    treated = cache.treated.edit()
    stale: set[ClusterRef] = set(changed)
    doubtful: set[str] = set(edited)
    for place in touched:
        old = outcomes.get(place)
        new: Outcome | None = hosts.get(place)
        if new is None:
            new = streams.get(place)
        if new is not None:
            outcomes[place] = new
        else:
            outcomes.pop(place, None)
            served.pop(place, None)
            passed.pop(place, None)
        # A listener may have got another protocol: then one kind takes the place of the other.
        if type(new) is HostOutcome:
            served[place] = new.host
            limited += new.limited
        elif type(new) is StreamOutcome:
            passed[place] = new.route
        if type(old) is HostOutcome:
            limited -= old.limited
            if type(new) is StreamOutcome:
                del served[place]
        elif type(old) is StreamOutcome and type(new) is HostOutcome:
            del passed[place]
        for ref in new.clusters if new is not None else ():
            uses[ref] = uses.get(ref, 0) + 1
            stale.add(ref)
        for ref in old.clusters if old is not None else ():
            uses[ref] -= 1
            stale.add(ref)
            if not uses[ref]:
                del uses[ref]
        come = new.units if new is not None else ()
        gone = old.units if old is not None else ()
        if come or gone:
            doubtful |= _count(policy_uses, gone, come)
        ways, left = _ways_of(new), _ways_of(old)
        if ways or left:
            _count(treated, left, ways)
    doubtful |= _count(policy_uses, cache.filters - filters, filters - cache.filters)
    policies, requested = cache.policies.edit(), cache.asked.edit()
    for name in doubtful:
        unit = units[name] if name in policy_uses else None
        stale |= _count(uses, requested.get(name, ()), unit.clusters if unit else ())
        _put(policies, name, unit.unit if unit else None)
        _put(requested, name, unit.clusters or None if unit else None)
    used, secrets = cache.clusters.edit(), cache.secrets.edit()
    ways_of, counted = treated.done(), uses.done()
    checking = _list_checking(cache.checking, doubtful, policies)
    if checking is not cache.checking:
        stale |= cache.crowded
    if max(len(checking), len(cache.checking)) > ir.CHECKS_MOST and any(
        one in checking or one in cache.checking for one in doubtful
    ):
        stale |= cache.varied
    found = _put_clusters(stale, counted, clusters, used, secrets, ways_of, checking, units)
    zoned = _count_zoned(cache.clusters, used, {ref.id for ref in stale})
    zoned += _count_zoned(cache.policies, policies, doubtful)
    return FleetCache(
        outcomes=outcomes.done(),
        hosts=served.done(),
        streams=passed.done(),
        clusters=used.done(),
        uses=counted,
        secrets=secrets.done(),
        limited=limited,
        policies=policies.done(),
        asked=requested.done(),
        policy_uses=policy_uses.done(),
        filters=filters,
        treated=ways_of,
        checking=checking,
        crowded=cache.crowded - stale | {ref for ref, one in found.items() if one.crowded},
        varied=cache.varied - stale | {ref for ref, one in found.items() if one.varied},
        unmade=_put_unmade(cache.unmade, stale, found),
        zoned=cache.zoned + zoned,
    )


def _ways_of(outcome: Outcome | None) -> tuple[BackendPolicy, ...]:
    if outcome is None:
        return ()
    return outcome.backend_policies if isinstance(outcome, StreamOutcome) else outcome.treatments


def _list_checking(
    before: frozenset[str], doubtful: Iterable[str], policies: Draft[str, ir.PolicyUnit]
) -> frozenset[str]:
    """Return the units with a check; the very set that was there, if it is the same."""
    come, gone = set(), set()
    for name in doubtful:
        unit = policies.get(name)
        checks = unit is not None and unit.traffic is not None and unit.traffic.check is not None
        if checks and name not in before:
            come.add(name)
        elif not checks and name in before:
            gone.add(name)
    return before - gone | come if come or gone else before


def _count_zoned(
    before: SortedMap[str, ir.Cluster] | SortedMap[str, ir.PolicyUnit],
    after: Draft[str, ir.Cluster] | Draft[str, ir.PolicyUnit],
    names: Iterable[str],
) -> int:
    """Return how many more of these make zones count now."""
    return sum(wants_zones(after.get(name)) - wants_zones(before.get(name)) for name in names)


def _put(table: Draft[str, _T], name: str, value: _T | None) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value


def _count(counts: Draft[_T, int], gone: Iterable[_T], come: Iterable[_T]) -> set[_T]:
    """Count users of things; return the things."""
    for one in come:
        counts[one] = counts.get(one, 0) + 1
    for one in gone:
        counts[one] -= 1
        if not counts[one]:
            del counts[one]
    return {*come, *gone}


def _put_clusters(
    stale: Iterable[ClusterRef],
    uses: SortedMap[ClusterRef, int],
    clusters: SortedMap[ClusterRef, ClusterOutcome],
    used: Draft[str, ir.Cluster],
    secrets: Draft[ClusterRef, tuple[ir.Secret, ...]],
    treated: SortedMap[BackendPolicy, int],
    checking: frozenset[str],
    units: Mapping[str, UnitOutcome],
) -> dict[ClusterRef, BackendPolicies]:
    """Bring `used` and `secrets` up to date for these; what nobody uses goes. Return how those are treated that depend on checks."""
    found: dict[ClusterRef, BackendPolicies] = {}
    for ref in stale:
        if ref not in uses:
            used.pop(ref.id, None)
            secrets.pop(ref, None)
            continue
        outcome = clusters[ref]
        cluster = outcome.cluster
        if treated:
            one = list_backend_policies(cluster.name, treated, checking, units)
            if one.varied:
                found[ref] = one
            if one.ways:
                cluster = _treat(cluster, one.ways, used.get(cluster.name))
        used[cluster.name] = cluster
        if outcome.secrets:
            secrets[ref] = outcome.secrets
        else:
            secrets.pop(ref, None)
    return found


def _put_unmade(
    before: Mapping[ClusterRef, tuple[str, ...]],
    stale: AbstractSet[ClusterRef],
    found: Mapping[ClusterRef, BackendPolicies],
) -> Mapping[ClusterRef, tuple[str, ...]]:
    """Return the units whose check of a cluster is not made; the very mapping that was there, if it is the same."""
    now = {ref: units for ref, units in before.items() if ref not in stale}
    now.update({ref: one.unmade for ref, one in found.items() if one.unmade})
    return before if now == before else now


def _treat(cluster: ir.Cluster, ways: Ways, before: ir.Cluster | None) -> ir.Cluster:
    """Return a cluster that is treated so; the very one that was there, if it is the same."""
    made = msgspec.structs.replace(cluster, treatments=intern(ways))
    return before if before == made else made
