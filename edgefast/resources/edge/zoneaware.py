"""zoneAware of a BackendTrafficPolicy: how endpoints in the proxy's own zone, or in zones that are named, come first.

In: `spec.loadBalancer.zoneAware` of `gateway.edge.io/v1alpha1` documents. Out: `ZoneAware`. Source: Envoy Gateway's fields.
Must never: be what decides for consistentHash; a key has its endpoint whichever zone it is asked from.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.resources.model.fields import Element, by_keys, expects

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
    """All requests stay in the own zone, however many there are."""

    min_endpoints_in_zone_threshold: Annotated[
        Threshold,
        Meta(
            description="Endpoints of the own zone that have to be well for that; of fewer no more stay than is their share."
        ),
    ] = 1


class PreferLocalZone(Element, frozen=True, kw_only=True):
    """Requests stay in the own zone, as far as endpoints of all zones are equally busy then."""

    min_endpoints_threshold: Annotated[
        Threshold,
        Meta(
            description="Endpoints of all zones that have to be well; of fewer all get requests alike."
        ),
    ] = 6
    percentage_enabled: Annotated[
        Annotated[int, Meta(ge=0, le=100)],
        Meta(description="Percent of the requests that this is for; the others go to all zones."),
    ] = 100
    force: Annotated[
        ForceLocalZone | None,
        Meta(description="All of them stay; absent: as many as do not overload the zone."),
    ] = None


class ZoneWeight(Element, frozen=True, kw_only=True):
    """How much one zone gets."""

    zone: Annotated[ZoneName, Meta(description="Its name.")]
    weight: Annotated[
        Annotated[int, Meta(ge=0, le=MOST)],
        Meta(description="Its part of the sum; a zone that is not in the list has 1."),
    ]


class ZoneAware(Element, frozen=True, kw_only=True):
    """Which zones' endpoints come first; with neither field none does, whatever the Service says."""

    prefer_local: Annotated[
        PreferLocalZone | None, Meta(description="That of the proxy that has the request.")
    ] = None
    weighted_zones: Annotated[
        Annotated[
            tuple[ZoneWeight, ...], Meta(min_length=1, max_length=MAX_ZONES, extra=by_keys("zone"))
        ]
        | None,
        Meta(description="Zones get requests by weight, wherever the proxy is."),
    ] = None
