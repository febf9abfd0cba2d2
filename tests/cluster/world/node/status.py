"""The status of a pod as its node tells it.

In: a pod. Out: PodStatus. Readiness is told as probed while a pod is ending too, so that endpoints are "serving" as long
as they serve.
Source: Kubernetes API, PodStatus; "Pod Lifecycle", phases.
Must never: call a pod ready of which a container is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.world import addresses as at
from cluster.world.node.container import now

if TYPE_CHECKING:
    from cluster.world.node.pod import Pod


def status_of(pod: Pod) -> dict[str, Any]:
    """Return the status to be posted."""
    containers, inits = pod.containers, pod.inits
    phase = _phase(pod)
    beside = [*containers, *(one for one in inits if one.sidecar)]
    ready = phase == "Running" and bool(containers) and all(one.ready for one in beside)
    initialised = all(one.started if one.sidecar else one.exit == 0 for one in inits)
    before = {one["type"]: one for one in (pod.obj.get("status") or {}).get("conditions") or []}
    gates = all(
        before.get(gate["conditionType"], {}).get("status") == "True"
        for gate in pod.spec.get("readinessGates") or []
    )
    values = {
        "PodReadyToStartContainers": bool(pod.address),
        "Initialized": initialised,
        "ContainersReady": ready,
        "Ready": ready and gates,
    }
    conditions = [one for one in before.values() if one["type"] not in values]
    conditions += [_condition(pod, phase, *pair, before.get(pair[0])) for pair in values.items()]
    status: dict[str, Any] = {
        "phase": phase,
        "hostIP": at.NODE_ADDRESS,
        "hostIPs": [{"ip": at.NODE_ADDRESS}],
        "startTime": pod.started_at,
        "conditions": conditions,
        "containerStatuses": [one.status() for one in containers],
        "initContainerStatuses": [one.status() for one in inits],
    }
    if pod.address:
        status |= {"podIP": pod.address, "podIPs": [{"ip": pod.address}]}
    return status


def ready_of(status: dict[str, Any] | None) -> list[str]:
    """Return the conditions that decide about endpoints."""
    conditions = (status or {}).get("conditions") or []
    kinds = ("ContainersReady", "Ready")
    return sorted(f"{one['type']}={one['status']}" for one in conditions if one["type"] in kinds)


def _phase(pod: Pod) -> str:
    if pod.finished:
        failed = any(one.exit != 0 for one in [*pod.containers, *pod.inits] if not one.sidecar)
        return "Failed" if failed else "Succeeded"
    return "Running" if any(one.probes is not None for one in pod.containers) else "Pending"


def _condition(
    pod: Pod, phase: str, kind: str, value: bool, before: dict[str, Any] | None
) -> dict[str, Any]:
    text = "True" if value else "False"
    condition = {"type": kind, "status": text, "lastTransitionTime": now()}
    if before and before.get("status") == text and before.get("lastTransitionTime"):
        condition["lastTransitionTime"] = before["lastTransitionTime"]
    if not value:
        ended = phase in ("Succeeded", "Failed")
        condition["reason"] = f"Pod{phase}" if ended else "ContainersNotReady"
    return condition
