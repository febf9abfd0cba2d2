"""Pod template of a fleet: two containers, no privileges, nothing on disk.

In: a fleet and the placement.
Out: `spec.template` of the workload. Every changed byte rolls all pods of the fleet. The template
therefore depends only on EdgeProxy spec.deployment, the Gateway's labels and the release's image.
Source: spec section 2; Kubernetes pod security standard "restricted".
Must never: contain a listener, a generation, a digest of tables or of certificates.
"""

from __future__ import annotations

from controller.fleets.edge_container import edge_volumes, render_edge
from controller.fleets.metadata import pod_metadata
from controller.fleets.placement import METRICS_PORT, USER, Manifest, Placement
from controller.fleets.shutdown_container import (
    grace_period,
    render_shutdown_manager,
    shutdown_volumes,
)
from edgefast import ir

_SCRAPED = {
    "prometheus.io/path": "/metrics",
    "prometheus.io/port": str(METRICS_PORT),
    "prometheus.io/scrape": "true",
}


def render_pod(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the template; an EdgeProxy's labels lose against a Gateway's, both against the selector."""
    requested = infra.pod
    spec: Manifest = {
        "automountServiceAccountToken": False,
        "containers": [render_edge(infra, place), render_shutdown_manager(infra, place)],
        "enableServiceLinks": False,
        "securityContext": {
            "fsGroup": USER,
            "runAsGroup": USER,
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": infra.name,
        "terminationGracePeriodSeconds": grace_period(infra),
        "volumes": [*edge_volumes(infra, place), *shutdown_volumes()],
    }
    if place.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in place.pull_secrets]
    if requested.affinity:
        spec["affinity"] = requested.affinity
    if requested.node_selector:
        spec["nodeSelector"] = requested.node_selector
    if requested.tolerations:
        spec["tolerations"] = list(requested.tolerations)
    if requested.topology_spread_constraints:
        spec["topologySpreadConstraints"] = list(requested.topology_spread_constraints)
    if requested.priority_class_name:
        spec["priorityClassName"] = requested.priority_class_name
    labels, annotations = pod_metadata(infra)
    annotations = {**_SCRAPED, **requested.annotations, **annotations}
    return {
        "metadata": {
            "annotations": dict(sorted(annotations.items())),
            "labels": dict(sorted({**requested.labels, **labels}.items())),
        },
        "spec": spec,
    }
