"""Zone aware: loadBalancer.zoneAware of a BackendTrafficPolicy: preference for the proxy's own zone, or for named zones.

In: `spec.loadBalancer.zoneAware` of `gateway.edge.io/v1alpha1` documents. Out: `ZoneAware`. Source:
Envoy Gateway's fields.
Must never: affect consistentHash; a key has its endpoint for requests from every zone.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.api.model.fields import Element, by_keys, expects

#: Endpoints that a threshold may ask for, and what a zone may weigh.
MOST = 1_000_000
#: Zones that weigh something else than 1.
MAX_ZONES = 32
#: A label's value, which zones' names are.
ZONE_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9_.\-]{0,61}[A-Za-z0-9])?\Z"

ZoneName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=ZONE_PATTERN,
        extra=expects("a zone's name such as eu-central-1a"),
    ),
]
Threshold = Annotated[int, Meta(ge=0, le=MOST)]


class ForceLocalZone(Element, frozen=True, kw_only=True):
    """Keeps all requests in the own zone, independent of its load."""

    min_endpoints_in_zone_threshold: Annotated[
        Threshold,
        Meta(
            description="Healthy endpoints of the own zone that are required. With fewer, the zone "
            "gets only its share."
        ),
    ] = 1


class PreferLocalZone(Element, frozen=True, kw_only=True):
    """Keeps requests in the own zone while endpoints of all zones stay equally busy."""

    min_endpoints_threshold: Annotated[
        Threshold,
        Meta(
            description="Healthy endpoints of all zones that are required. With fewer, all endpoints "
            "get requests equally."
        ),
    ] = 6
    percentage_enabled: Annotated[
        Annotated[int, Meta(ge=0, le=100)],
        Meta(description="Percent of the requests that prefer zones. The others go to all zones."),
    ] = 100
    force: Annotated[
        ForceLocalZone | None,
        Meta(
            description="Keeps all requests in the zone. Absent: as many as do not overload the zone."
        ),
    ] = None


class ZoneWeight(Element, frozen=True, kw_only=True):
    """Weight of one zone."""

    zone: Annotated[ZoneName, Meta(description="Its name.")]
    weight: Annotated[
        Annotated[int, Meta(ge=0, le=MOST)],
        Meta(description="Weight of the zone. A zone without an entry has weight 1."),
    ]


class ZoneAware(Element, frozen=True, kw_only=True):
    """Prefers endpoints by zone. Without a field no zone is preferred, also if the Service sets trafficDistribution."""

    prefer_local: Annotated[
        PreferLocalZone | None, Meta(description="Prefers the zone of the proxy.")
    ] = None
    weighted_zones: Annotated[
        Annotated[
            tuple[ZoneWeight, ...], Meta(min_length=1, max_length=MAX_ZONES, extra=by_keys("zone"))
        ]
        | None,
        Meta(
            description="Distributes requests by the weight of zones, independent of the proxy's zone."
        ),
    ] = None
