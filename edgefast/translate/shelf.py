"""Shelf: the virtual hosts and clusters of one fleet, each in order, kept from one translation to the next.

In: the shelf before, which hosts and clusters were touched since. Out: the next shelf, in which a change costs a search and
not a sort. Must never: differ from a shelf that is filled from nothing with the same hosts and clusters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

import msgspec

from edgefast.translate.cluster import ClusterOutcome
from edgefast.translate.clusterref import ClusterRef
from edgefast.translate.virtualhost import HostOutcome, Place


class Shelf(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one fleet is assembled of; never changed after it was made."""

    places: list[Place] = []  # sorted
    hosts: list[HostOutcome] = []  # of `places`
    ids: list[str] = []  # of clusters, sorted
    clusters: list[ClusterOutcome] = []  # of `ids`
    uses: Mapping[ClusterRef, int] = {}  # hosts that use a cluster


class Shelves(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all fleets; they hold as long as the fleets have the same listeners."""

    fleet_of: Mapping[str, str] = {}  # listener -> fleet
    by_fleet: Mapping[str, Shelf] = {}


def refill(
    shelf: Shelf,
    touched: Iterable[Place],
    hosts: Mapping[Place, HostOutcome],
    changed: Iterable[ClusterRef],
    clusters: Mapping[ClusterRef, ClusterOutcome],
) -> Shelf:
    """Return the shelf with these places, and these clusters if they are used, as they are now."""
    places, found, ids, outcomes = (
        shelf.places.copy(),
        shelf.hosts.copy(),
        shelf.ids.copy(),
        shelf.clusters.copy(),
    )
    uses = dict(shelf.uses)
    stale: set[ClusterRef] = set(changed)
    for place in touched:
        at = bisect_left(places, place)
        old = found[at] if at < len(places) and places[at] == place else None
        new = hosts.get(place)
        if old is None and new is not None:
            places.insert(at, place)
            found.insert(at, new)
        elif old is not None and new is not None:
            found[at] = new
        elif old is not None:
            del places[at], found[at]
        for ref in new.clusters if new is not None else ():
            uses[ref] = uses.get(ref, 0) + 1
            stale.add(ref)
        for ref in old.clusters if old is not None else ():
            uses[ref] -= 1
            stale.add(ref)
            if not uses[ref]:
                del uses[ref]
    for ref in stale:
        name = ref.id
        at = bisect_left(ids, name)
        known = at < len(ids) and ids[at] == name
        if ref in uses and known:
            outcomes[at] = clusters[ref]
        elif ref in uses:
            ids.insert(at, name)
            outcomes.insert(at, clusters[ref])
        elif known:
            del ids[at], outcomes[at]
    return Shelf(places=places, hosts=found, ids=ids, clusters=outcomes, uses=uses)
