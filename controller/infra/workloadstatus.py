"""What a Deployment or DaemonSet says of its pods.

In: a live workload as plain values. Out: numbers. Source: apps/v1 DeploymentStatus, DaemonSetStatus.
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
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 0):
        return False
    ready = status.get("numberReady" if live["kind"] == "DaemonSet" else "readyReplicas", 0)
    return bool(ready >= wanted_pods(live))
