"""Skipped health checks: checks of a rule that no worker makes, because its cluster exceeds the limit of different checks.

In: the served table, a rule. Out: lines. The checks of a cluster are found as the proxy finds them
(core/healthcheck/prober.pyx).
Must never: report a check that is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefast import ir
from edgefast.explain.backend_policy import treating
from edgefast.explain.served_fleet import Served

__all__ = ["list_skipped_checks"]


def list_skipped_checks(served: Served, rule: ir.Rule) -> Iterator[str]:
    """Give a line for each backend of a rule whose endpoints are not asked what the rule's policies say."""
    for share in rule.backends:
        cluster = served.clusters.get(share.cluster)
        unit = _find_check(treating(served, rule, share)[0])
        if cluster is None or unit is None or _check_of(unit) in _list_made(served, cluster):
            continue
        yield (
            f"{share.cluster}: the health check of {unit.name} is not used because the backend "
            f"has {ir.CHECKS_MOST} others; endpoints that fail it still get requests"
        )


def _list_made(served: Served, cluster: ir.Cluster) -> list[ir.HealthCheck | None]:
    found: dict[ir.HealthCheck | None, None] = {}
    for _, names in cluster.treatments:
        unit = _find_check(served.units(names))
        if unit is not None:
            found.setdefault(_check_of(unit))
    return [*found][: ir.CHECKS_MOST]


def _find_check(units: Sequence[ir.PolicyUnit]) -> ir.PolicyUnit | None:
    return next((one for one in units if _check_of(one) is not None), None)


def _check_of(unit: ir.PolicyUnit) -> ir.HealthCheck | None:
    return unit.traffic.check if unit.traffic is not None else None
