"""Shelf: the virtual hosts and clusters of one fleet, each in order, kept from one translation to the next.

In: the shelf before, which hosts and clusters were touched since. Out: the next shelf, in which a change costs a search and
not a sort. Must never: differ from a shelf that is filled from nothing with the same hosts and clusters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping

import msgspec

from edgefast import ir
from edgefast.translate.cluster import ClusterOutcome
from edgefast.translate.clusterref import ClusterRef
from edgefast.translate.virtualhost import HostOutcome, Place


class Shelf(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one fleet is assembled of; never changed after it was made."""

    places: list[Place] = []  # sorted
    outcomes: list[HostOutcome] = []  # of `places`
    hosts: list[ir.VirtualHost] = []  # of `places`
    ids: list[str] = []  # of clusters, sorted
    clusters: list[ir.Cluster] = []  # of `ids`
    uses: Mapping[ClusterRef, int] = {}  # hosts that use a cluster
    secrets: Mapping[ClusterRef, tuple[ir.Secret, ...]] = {}  # of clusters that have any
    limited: int = 0  # hosts with rate limits


class Shelves(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all fleets; they hold as long as the fleets have the same listeners."""

    fleet_of: Mapping[str, str] = {}  # listener -> fleet
    by_fleet: Mapping[str, Shelf] = {}


def refill(
    shelf: Shelf,
    touched: Collection[Place],
    hosts: Mapping[Place, HostOutcome],
    changed: Collection[ClusterRef],
    clusters: Mapping[ClusterRef, ClusterOutcome],
) -> Shelf:
    """Return the shelf with these places, and these clusters if they are used, as they are now."""
    if not touched and not changed:
        return shelf
    places, found, served = shelf.places.copy(), shelf.outcomes.copy(), shelf.hosts.copy()
    uses, limited = dict(shelf.uses), shelf.limited
    stale: set[ClusterRef] = set(changed)
    for place in touched:
        at = bisect_left(places, place)
        old = found[at] if at < len(places) and places[at] == place else None
        new = hosts.get(place)
        if old is None and new is not None:
            places.insert(at, place)
            found.insert(at, new)
            served.insert(at, new.host)
        elif old is not None and new is not None:
            found[at], served[at] = new, new.host
        elif old is not None:
            del places[at], found[at], served[at]
        limited += (new is not None and new.limited) - (old is not None and old.limited)
        for ref in new.clusters if new is not None else ():
            uses[ref] = uses.get(ref, 0) + 1
            stale.add(ref)
        for ref in old.clusters if old is not None else ():
            uses[ref] -= 1
            stale.add(ref)
            if not uses[ref]:
                del uses[ref]
    ids, used, secrets = _put_clusters(shelf, stale, uses, clusters)
    return Shelf(
        places=places,
        outcomes=found,
        hosts=served,
        ids=ids,
        clusters=used,
        uses=uses,
        secrets=secrets,
        limited=limited,
    )


def _put_clusters(
    shelf: Shelf,
    stale: Iterable[ClusterRef],
    uses: Mapping[ClusterRef, int],
    clusters: Mapping[ClusterRef, ClusterOutcome],
) -> tuple[list[str], list[ir.Cluster], dict[ClusterRef, tuple[ir.Secret, ...]]]:
    """Return the shelf's ids, clusters and secrets with these as they are now; what nobody uses goes."""
    ids, used, secrets = shelf.ids.copy(), shelf.clusters.copy(), dict(shelf.secrets)
    for ref in stale:
        name = ref.id
        at = bisect_left(ids, name)
        known = at < len(ids) and ids[at] == name
        secrets.pop(ref, None)
        if ref not in uses:
            if known:
                del ids[at], used[at]
            continue
        outcome = clusters[ref]
        if outcome.secrets:
            secrets[ref] = outcome.secrets
        if known:
            used[at] = outcome.cluster
        else:
            ids.insert(at, name)
            used.insert(at, outcome.cluster)
    return ids, used, secrets
