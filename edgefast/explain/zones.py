"""Zones: which zones' endpoints a rule prefers, and which policy or Service sets it, as text.

In: ir.ZoneAware of policies and of clusters. Out: text. Only a proxy knows its own zone, so no
endpoint is named.
Must never: promise a zone; a request goes to another zone rather than fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgefast import ir
from edgefast.explain.served_fleet import Live

__all__ = ["describe_zones", "list_zones"]


def describe_zones(one: ir.ZoneAware) -> str:
    """Return whose endpoints come first."""
    if not one.percent:
        return "of all zones equally"
    if one.weights:
        return f"by zone: {', '.join(f'{zone} {weight}' for zone, weight in one.weights)}, others 1"
    message = "of the proxy's own zone first"
    if one.force:
        message += f", all while {one.force} {'is' if one.force == 1 else 'are'} healthy there"
    else:
        message += ", while all zones are equally busy"
    if one.min_endpoints > 1:
        message += f", with at least {one.min_endpoints} healthy endpoints"
    return message + (f", for {one.percent} % of requests" if one.percent < 100 else "")


def list_zones(
    rule: ir.Rule,
    clusters: Sequence[ir.Cluster | None],
    balancer: ir.LoadBalancer | None,
    live: Live | None,
) -> tuple[str, ...]:
    """Say what the Services of a rule's backends want, and where the proxy is that was asked, if that counts."""
    message = _list_wishes(rule, clusters, balancer)
    asks = balancer is not None and balancer.zones is not None and not balancer.zones.weights
    if live is None or not (message or (asks and not rule.status)):
        return message
    where = f"in zone {live.zone}" if live.zone else "in an unknown zone"
    return (*message, f"this proxy is {where}")


def _list_wishes(
    rule: ir.Rule, clusters: Sequence[ir.Cluster | None], balancer: ir.LoadBalancer | None
) -> tuple[str, ...]:
    """Give them where no policy speaks of zones and no key decides."""
    if rule.status or (
        balancer is not None and (balancer.zones is not None or balancer.type == "hash")
    ):
        return ()
    found = {one.name: one.zones for one in clusters if one is not None and one.zones is not None}
    return tuple(
        f"{name}: endpoints {describe_zones(zones)}, as its Service sets"
        for name, zones in found.items()
    )
