"""HorizontalPodAutoscaler of a fleet.

In: a fleet with `hpa`, and the placement. Out: the manifest. Source: EdgeProxy spec.hpa.
Must never: be made for a DaemonSet, which has no scale.
"""

from __future__ import annotations

from typing import Any

from controller.infra.metadata import render_metadata
from controller.infra.placement import Manifest, Placement
from edgefast import ir

_METRICS: tuple[dict[str, Any], ...] = (
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    },
)


def render_hpa(infra: ir.Infra, place: Placement, hpa: ir.InfraHPA) -> Manifest:
    """Return the autoscaler of the fleet's Deployment."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": render_metadata(infra, place),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": infra.workload, "name": infra.name},
            "minReplicas": hpa.min_replicas,
            "maxReplicas": hpa.max_replicas,
            "metrics": list(hpa.metrics or _METRICS),
        },
    }
