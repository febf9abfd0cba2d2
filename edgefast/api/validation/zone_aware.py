"""Zone aware: rules about `loadBalancer.zoneAware` of a BackendTrafficPolicy, each with its CEL twin for the CRD.

In: parts of the kind. Out: violations; `cel` is the same rule for an API server.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.load_balancer import LoadBalancer
from edgefast.api.edge.zone_aware import ZoneAware
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()


@BOOK.on(
    LoadBalancer,
    "type",
    "zone_aware",
    cel="!has(self.zoneAware) || self.type in ['LeastRequest', 'RoundRobin', 'Random']",
    message="zoneAware may be set with types LeastRequest, RoundRobin and Random only",
)
def check_zone_aware(one: LoadBalancer) -> Iterable[Violation]:
    """A key has one endpoint, whichever proxy is asked."""
    if one.zone_aware is not None and one.type not in ("LeastRequest", "RoundRobin", "Random"):
        return (Violation(("zoneAware",), "Forbidden", f"with type {one.type}"),)
    return ()


@BOOK.on(
    ZoneAware,
    "prefer_local",
    "weighted_zones",
    cel="!has(self.preferLocal) || !has(self.weightedZones)",
    message="preferLocal and weightedZones exclude each other",
)
def check_one_way(one: ZoneAware) -> Iterable[Violation]:
    """Zones are chosen in one way."""
    if one.prefer_local is not None and one.weighted_zones is not None:
        return (Violation(("weightedZones",), "Forbidden", "together with preferLocal"),)
    return ()
