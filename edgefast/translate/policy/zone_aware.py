"""Zone aware: BackendTrafficPolicy spec.loadBalancer.zoneAware -> ir.ZoneAware.

In: the field. Out: the zone settings of the engine; a problem for every mistake.
Source: BackendTrafficPolicy, with the fields and defaults of Envoy Gateway.
Must never: guess a zone.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.edge.zone_aware import MAX_ZONES, MOST, ForceLocalZone, ZoneAware
from edgefast.api.validation.zone_aware import check_one_way
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.backend.zones import read_zone
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["translate_zone_aware"]


def translate_zone_aware(given: ZoneAware, report: Report, path: str) -> ir.ZoneAware:
    """Translate it; of what a report refuses nothing is to be used."""
    refuse_violations(check_one_way(given), report, path, "Invalid")
    if given.weighted_zones is not None:
        weights = _read_weights(given, report, f"{path}.weightedZones")
        return ir.ZoneAware(min_endpoints=1, weights=weights)
    near, where = given.prefer_local, f"{path}.preferLocal"
    if near is None:
        return ir.ZoneAware(percent=0)
    least = _read(near.min_endpoints_threshold, MOST, report, f"{where}.minEndpointsThreshold")
    percent = _read(near.percentage_enabled, 100, report, f"{where}.percentageEnabled")
    force = 0
    if near.force is not None:
        force = _read_force(near.force, report, f"{where}.force")
    return ir.ZoneAware(percent=percent, min_endpoints=least, force=force)


def _read_force(given: ForceLocalZone, report: Report, path: str) -> int:
    message = given.min_endpoints_in_zone_threshold
    # 0 is as 1: in a zone that has none nothing can stay.
    return max(_read(message, MOST, report, f"{path}.minEndpointsInZoneThreshold"), 1)


def _read_weights(given: ZoneAware, report: Report, path: str) -> tuple[tuple[str, int], ...]:
    zones = given.weighted_zones or ()
    if not 1 <= len(zones) <= MAX_ZONES:
        message = f"{len(zones)} entries (expected 1 to {MAX_ZONES})"
        _refuse(report, path, "Invalid", message)
    found: dict[str, int] = {}
    for at, one in enumerate(zones):
        where = f"{path}[{at}]"
        zone = read_zone(one.zone, report, f"{where}.zone", "Invalid")
        if not zone:
            _refuse(report, f"{where}.zone", "Required", "a zone's name")
        if zone in found:
            _refuse(report, f"{where}.zone", "Duplicate", f'"{zone}"')
        found[zone] = _read(one.weight, MOST, report, f"{where}.weight")
    return tuple(sorted(found.items()))


def _read(given: int, most: int, report: Report, path: str) -> int:
    if 0 <= given <= most:
        return given
    _refuse(report, path, "Invalid", f"{given} (expected 0 to {most})")
    return 0


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
