"""Skipped health checks: units with a backend health check that exceeds the limit of the cluster.

Overrides and older policies take the checks that the cluster makes (fleet/backend_policies.py
decides).
In: the caches of all fleets. Out: by unit, the backends, for the Gateways of a fleet each.
Must never: report a check in a fleet that makes it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgefast.api.snapshot import Key
from edgefast.translate.fleet.fleet_cache import FleetCaches

__all__ = ["SkippedChecks", "find_skipped_checks"]


class SkippedChecks(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all units; never changed after it was made."""

    places: Mapping[str, Mapping[Key, tuple[str, ...]]] = {}  # unit -> Gateway -> backends

    def of(self, unit: str, gateway: Key) -> tuple[str, ...]:
        """Return the backends below a Gateway that are not asked what a unit says."""
        return self.places.get(unit, {}).get(gateway, ())


def find_skipped_checks(
    caches: FleetCaches, before: SkippedChecks
) -> tuple[SkippedChecks, frozenset[str]]:
    """Return those of now, the very ones that were there if they are the same, and the units for which they are others."""
    some = {name for name, one in caches.by_fleet.items() if one.unmade}
    if not some and not before.places:
        return before, frozenset()
    gateways: dict[str, set[Key]] = {name: set() for name in some}
    for listener, fleet in caches.grouped.fleet_of.items():
        if fleet in some:
            namespace, name, *_ = listener.split("/")
            gateways[fleet].add((namespace, name))
    found: dict[str, dict[Key, set[str]]] = {}
    for fleet in some:
        for ref, units in caches.by_fleet[fleet].unmade.items():
            for unit in units:
                for gateway in gateways[fleet]:
                    found.setdefault(unit, {}).setdefault(gateway, set()).add(ref.told)
    now = {
        unit: {gateway: tuple(sorted(reported)) for gateway, reported in places.items()}
        for unit, places in found.items()
    }
    changed = frozenset(
        unit for unit in {*now, *before.places} if now.get(unit) != before.places.get(unit)
    )
    return (SkippedChecks(places=now) if changed else before), changed
