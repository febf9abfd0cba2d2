"""Deployment or DaemonSet of a fleet.

In: a fleet and the placement. Out: the manifest. A roll makes new pods before it ends old ones, so that there are
never fewer proxies than wanted; `replicas` is left out where the user, an autoscaler or the kind decides it.
Source: spec section 2 (generated data plane resources); EdgeProxy spec.deployment.
Must never: change `selector`; it is immutable.
"""

from __future__ import annotations

from controller.infra.metadata import render_metadata
from controller.infra.placement import Manifest, Placement
from controller.infra.pod import render_pod
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
