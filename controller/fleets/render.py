"""render_fleet: all objects of one fleet, in the order of their creation.

In: a fleet and the placement.
Out: manifests as plain values, the same for the same input. controller/certs creates the Secret of
the client certificate, because keys are random; `metadata.adopt` adds it to the fleet.
Source: spec section 2 (generated data plane resources).
Must never: do I/O or change its input.
"""

from __future__ import annotations

from typing import Any, Literal

from controller.fleets.metadata import render_metadata
from controller.fleets.placement import CA_KEY, Manifest, Placement
from controller.fleets.pod import render_pod
from controller.fleets.service import render_service
from edgefast import ir


def render_workload(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the workload that runs the proxies."""
    spec: Manifest = {
        "selector": {"matchLabels": dict(infra.selector)},
        "template": render_pod(infra, place),
    }
    if infra.workload == "DaemonSet":
        spec["updateStrategy"] = _rolling(1)
    else:
        spec["strategy"] = _rolling("25%")
        if infra.replicas is not None and infra.hpa is None:
            spec["replicas"] = infra.replicas
    return {
        "apiVersion": "apps/v1",
        "kind": infra.workload,
        "metadata": render_metadata(infra, place),
        "spec": spec,
    }


def _rolling(surge: int | str) -> Manifest:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}}


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


def render_pdb(
    infra: ir.Infra,
    place: Placement,
    bound: tuple[Literal["minAvailable", "maxUnavailable"], int | str],
) -> Manifest:
    """Return the budget of the fleet's pods."""
    name, pods = bound
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": render_metadata(infra, place),
        "spec": {"selector": {"matchLabels": dict(infra.selector)}, name: pods},
    }


def render_service_account(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the ServiceAccount that the fleet's pods run as."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": render_metadata(infra, place),
        "automountServiceAccountToken": False,
    }


def render_config_map(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the ConfigMap; a changed bundle reaches running pods through the mounted folder."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": render_metadata(infra, place),
        "data": {CA_KEY: place.ca},
    }


def render_fleet(infra: ir.Infra, place: Placement) -> tuple[Manifest, ...]:
    """Return the manifests of a fleet; what a pod needs to start comes before the workload."""
    manifests = [
        render_service_account(infra, place),
        render_config_map(infra, place),
        render_service(infra, place),
        render_workload(infra, place),
    ]
    if infra.hpa is not None:
        manifests.append(render_hpa(infra, place, infra.hpa))
    if infra.pdb is not None:
        manifests.append(render_pdb(infra, place, infra.pdb))
    return tuple(manifests)
