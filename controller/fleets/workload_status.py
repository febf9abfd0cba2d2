"""Workload status: the state of the pods of a Deployment or DaemonSet.

In: a live workload as plain values.
Out: numbers, and the cluster's messages about pods that do not start.
Source: apps/v1 DeploymentStatus (ReplicaFailure is that of its ReplicaSet), DaemonSetStatus.
Must never: trust a status that is older than the spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def wanted_pods(live: Mapping[str, Any]) -> int:
    """Return how many pods there are to be."""
    if live["kind"] == "DaemonSet":
        return int((live.get("status") or {}).get("desiredNumberScheduled", 0))
    return int(live["spec"].get("replicas", 1))


def is_up(live: Mapping[str, Any]) -> bool:
    """Tell whether all pods of the present spec are ready."""
    status = live.get("status") or {}
    if not _is_current(live):
        return False
    ready = status.get("numberReady" if live["kind"] == "DaemonSet" else "readyReplicas", 0)
    return bool(ready >= wanted_pods(live))


#: Conditions of a Deployment that say that pods do not come, and the status in which they do.
_BAD = (("ReplicaFailure", "True"), ("Progressing", "False"))


def find_trouble(live: Mapping[str, Any]) -> str:
    """Return why pods are not made or do not come up, "" while the cluster says nothing of the kind."""
    if not _is_current(live):
        return ""
    status = live.get("status") or {}
    name = f"{live['kind']} {live['metadata']['name']}"
    if live["kind"] == "DaemonSet" and wanted_pods(live) == 0:
        return f"{name}: no node can run its pods (nodeSelector, affinity, taints)"
    found = {one["type"]: one for one in status.get("conditions") or ()}
    message = [
        f"{found[type_].get('reason', type_)}: {found[type_].get('message', '')}"
        for type_, bad in _BAD
        if type_ in found and found[type_]["status"] == bad
    ]
    return f"{name}: {'; '.join(message)}" if message else ""


def _is_current(live: Mapping[str, Any]) -> bool:
    seen = (live.get("status") or {}).get("observedGeneration", 0)
    return bool(seen >= live["metadata"].get("generation", 0))
