"""Shelf: the virtual hosts, stream places and clusters of one fleet, kept from one translation to the next.

In: the shelf before, which of them were touched since. Out: the next shelf, made for the price of what was touched.
Must never: differ from a shelf that is filled from nothing with the same hosts and clusters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from edgefast import ir
from edgefast.sortedmap import EMPTY, Draft, SortedMap
from edgefast.translate.backend.cluster import ClusterOutcome
from edgefast.translate.facts.clusterref import ClusterRef
from edgefast.translate.virtualhost.stream import StreamOutcome
from edgefast.translate.virtualhost.virtualhost import HostOutcome, Place

Outcome = HostOutcome | StreamOutcome


class Shelf(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one fleet is assembled of; never changed after it was made."""

    outcomes: SortedMap[Place, Outcome] = EMPTY
    hosts: SortedMap[Place, ir.VirtualHost] = EMPTY  # of `outcomes`
    streams: SortedMap[Place, ir.StreamRoute] = EMPTY  # the others of them
    clusters: SortedMap[str, ir.Cluster] = EMPTY  # by id
    uses: SortedMap[ClusterRef, int] = EMPTY  # hosts and places that use a cluster
    secrets: SortedMap[ClusterRef, tuple[ir.Secret, ...]] = EMPTY  # of clusters that have any
    limited: int = 0  # hosts with rate limits


class Shelves(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all fleets; they hold as long as the fleets have the same listeners."""

    fleet_of: Mapping[str, str] = {}  # listener -> fleet
    by_fleet: Mapping[str, Shelf] = {}


def refill(
    shelf: Shelf,
    touched: Collection[Place],
    hosts: SortedMap[Place, HostOutcome],
    streams: SortedMap[Place, StreamOutcome],
    changed: Collection[ClusterRef],
    clusters: SortedMap[ClusterRef, ClusterOutcome],
) -> Shelf:
    """Return the shelf with these places, and these clusters if they are used, as they are now."""
    if not touched and not changed:
        return shelf
    outcomes, served, uses = shelf.outcomes.edit(), shelf.hosts.edit(), shelf.uses.edit()
    passed = shelf.streams.edit()
    limited = shelf.limited
    stale: set[ClusterRef] = set(changed)
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
    used, secrets = shelf.clusters.edit(), shelf.secrets.edit()
    _put_clusters(stale, uses, clusters, used, secrets)
    return Shelf(
        outcomes=outcomes.done(),
        hosts=served.done(),
        streams=passed.done(),
        clusters=used.done(),
        uses=uses.done(),
        secrets=secrets.done(),
        limited=limited,
    )


def _put_clusters(
    stale: Iterable[ClusterRef],
    uses: Draft[ClusterRef, int],
    clusters: SortedMap[ClusterRef, ClusterOutcome],
    used: Draft[str, ir.Cluster],
    secrets: Draft[ClusterRef, tuple[ir.Secret, ...]],
) -> None:
    """Bring `used` and `secrets` up to date for these; what nobody uses goes."""
    for ref in stale:
        if ref not in uses:
            used.pop(ref.id, None)
            secrets.pop(ref, None)
            continue
        outcome = clusters[ref]
        used[outcome.cluster.name] = outcome.cluster
        if outcome.secrets:
            secrets[ref] = outcome.secrets
        else:
            secrets.pop(ref, None)
