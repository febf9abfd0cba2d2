"""Zone diff: zone preferences of Services and zones of endpoints that differ between two tables.

In: a pair of tables. Out: changes. outcome.py reports the zone settings of policies with their
rules.
Must never: name endpoints that come or go; listener_diff.py does.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast import ir
from edgefast.explain.changes import Change
from edgefast.explain.fleet_pair import Pair, make_example
from edgefast.explain.zones import describe_zones

__all__ = ["compare_zones"]


def compare_zones(pair: Pair) -> Iterator[Change]:
    """Give clusters whose Services want other zones first than before, and those whose endpoints are in other zones."""
    counts = any(side.fleet.proxies is not None for side in pair.sides())
    for name in sorted(pair.old.clusters.keys() & pair.new.clusters.keys()):
        before, after = (side.clusters[name] for side in pair.sides())
        message = ""
        if before.zones != after.zones:
            words = describe_zones(after.zones) if after.zones else "as it comes"
            message = f"its Service selects endpoints {words}"
        elif (counts or after.zones or before.zones) and _moved(before, after):
            message = "endpoints are in other zones"
        if message:
            request = pair.by_cluster.get(name)
            example = make_example(request) if request is not None else None
            yield Change(kind="endpoints", text=f"{name}: {message}", example=example)


def _moved(before: ir.Cluster, after: ir.Cluster) -> bool:
    """Tell whether an endpoint that both have is in another zone."""
    zones = {(one.address, one.hostname, one.port): one.zone for one in before.endpoints}
    return any(
        zones.get((one.address, one.hostname, one.port), one.zone) != one.zone
        for one in after.endpoints
    )
