"""Zones: the zones of endpoints, and the zone preference of a Service.

In: a Service, its EndpointSlices, an endpoint of a Backend. Out: each endpoint's zone; ir.ZoneAware
where the Service prefers near ones. `trafficDistribution` (PreferClose, PreferSameZone,
PreferSameNode) keeps requests in the proxy's zone while it has an endpoint. PreferSameNode becomes
a zone preference: a node is in a zone, and proxies serve more than their own node. With annotation
service.kubernetes.io/topology-mode, Kubernetes assigns endpoints to zones (hints), each as many as
it needs. The zone of an endpoint is then its hint; if an endpoint has no hint, no preference
applies.
Source: Kubernetes Service v1, EndpointSlice v1 (zone, hints), KEP-2433, KEP-3015, KEP-4444.
Must never: read an unknown value as a preference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from edgefast import ir
from edgefast.api.core.endpointslice import Endpoint, EndpointSlice
from edgefast.api.core.service import Service
from edgefast.api.edge.zone_aware import ZONE_PATTERN
from edgefast.translate.report.report import Report

__all__ = ["is_hinted", "read_zone", "zone_preference", "zone_of"]

_MODE = "service.kubernetes.io/topology-mode"
_OLD_MODE = "service.kubernetes.io/topology-aware-hints"
_NEAR = ("PreferClose", "PreferSameZone", "PreferSameNode")
_WISH = ir.ZoneAware(min_endpoints=1, force=1)
_ZONE = re.compile(ZONE_PATTERN)


def is_hinted(service: Service, slices: Iterable[EndpointSlice]) -> bool:
    """Tell whether Kubernetes has given every endpoint that is ready to a zone, as the Service asks it to."""
    message = service.metadata.annotations
    if message.get(_MODE, message.get(_OLD_MODE, "")) not in ("Auto", "auto"):
        return False
    ready = [each for one in slices for each in one.endpoints if each.conditions.ready is not False]
    return bool(ready) and all(map(_hint_of, ready))


def zone_preference(service: Service, *, hinted: bool) -> ir.ZoneAware | None:
    """Return what the Service wants; None: nothing."""
    near = service.spec.traffic_distribution in _NEAR
    return _WISH if near or hinted else None


def zone_of(endpoint: Endpoint, *, hinted: bool) -> str:
    """Return an endpoint's zone, "" when nobody says it."""
    found = _hint_of(endpoint) if hinted else endpoint.zone
    return found if found and _ZONE.fullmatch(found) else ""


def _hint_of(endpoint: Endpoint) -> str:
    """Return the zone that it is given to, the first of several."""
    zones = endpoint.hints.get("forZones") if isinstance(endpoint.hints, Mapping) else None
    first = zones[0] if isinstance(zones, list | tuple) and zones else None
    name = first.get("name") if isinstance(first, Mapping) else None
    return name if isinstance(name, str) else ""


def read_zone(
    zone: str | None, report: Report, path: str, condition: Literal["", "Invalid"] = ""
) -> str:
    """Return a zone that somebody wrote; an API server without the schema lets others through."""
    if not zone:
        return ""
    if not _ZONE.fullmatch(zone):
        message = f'"{zone}" (expected a zone\'s name such as eu-central-1a)'
        report.refuse(path, "Invalid", message, condition=condition)
    return zone
