"""Proxies: the zone of each proxy of a fleet, for fleets with zone-aware backends.

In: the EndpointSlices of the fleet's own Service, which the cluster maintains. For every pod with
an address they have its zone (from its node's label topology.kubernetes.io/zone) and readiness. The
controller therefore reads no pods or nodes and queries no proxy: a proxy finds itself by its pod's
name.
Out: ir.Proxies, and a problem where zones are missing.
Source: Kubernetes EndpointSlice v1 (zone, targetRef).
Must never: count a proxy twice that has addresses of both families.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from edgefast import ir
from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.backend.zones import zone_of

__all__ = ["collect_proxies", "find_unplaced", "wants_zones"]

#: Proxies that a record names; of a larger fleet the others find no zone, and the shares are those of all.
MOST = 5000


def wants_zones(one: ir.Cluster | ir.PolicyUnit | None) -> bool:
    """Tell whether it makes it count which zone a proxy is in."""
    if isinstance(one, ir.Cluster):
        return one.zones is not None
    balancer = one.traffic.load_balancer if one is not None and one.traffic is not None else None
    zones = balancer.zones if balancer is not None else None
    return zones is not None and zones.percent > 0 and not zones.weights


def collect_proxies(slices: Iterable[EndpointSlice]) -> ir.Proxies:
    """Return where the proxies behind a Service are."""
    zones: dict[str, str] = {}
    ready: set[str] = set()
    for one in slices:
        for endpoint in one.endpoints:
            ref = endpoint.target_ref
            name = ref.get("name") if isinstance(ref, Mapping) else None
            if not isinstance(name, str) or ref is None or ref.get("kind") != "Pod":
                continue
            zones[name] = zone_of(endpoint, hinted=False) or zones.get(name, "")
            if endpoint.conditions.ready is not False:
                ready.add(name)
    shares = Counter(zones[name] for name in ready if zones[name])
    return ir.Proxies(
        shares=tuple(sorted(shares.items())), zones=tuple(sorted(zones.items())[:MOST])
    )


def find_unplaced(infra: ir.Infra, proxies: ir.Proxies) -> Iterator[Problem]:
    """Tell that proxies are in no zone that is known."""
    lost = sum(not zone for _, zone in proxies.zones)
    if lost:
        named = infra.gateways[0].split("/")
        yield Problem(
            ObjectRef("Gateway", *named),
            "",
            "ZoneNotKnown",
            f"{lost} of {len(proxies.zones)} proxies of {infra.namespace}/{infra.name} have no "
            "known zone; they send requests to endpoints of all zones",
            hint="label their nodes with topology.kubernetes.io/zone",
            severity="warning",
        )
