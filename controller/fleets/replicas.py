"""Replicas: transfers the number of proxies from the controller to an autoscaler without a change.

In: a Deployment that will be applied without `spec.replicas`.
Out: another field manager owns the field, if edgefast did. The server removes a field when its only
owner releases it, and the default is one. Without another owner, the fleet would shrink to one
proxy before the autoscaler acts.
Source: Kubernetes "Server-Side Apply", transferring ownership.
Must never: trust a watch, or the record of earlier writes; both may be outdated.
"""

from __future__ import annotations

from controller.fleets.managed_objects import owns_replicas
from controller.fleets.placement import MANAGER, Manifest
from controller.kube.client import Kube
from controller.kube.errors import ApiError

__all__ = ["release_replicas"]

#: Owner of the field while it passes.
_HANDOVER = f"{MANAGER}-handover"


async def release_replicas(kube: Kube, path: str, manifest: Manifest, deadline: float) -> None:
    """Leave `spec.replicas` of the object at `path` to others; `deadline` is for each call, in seconds. Raises ApiError."""
    try:
        live = await kube.get(path, deadline=deadline)
    except ApiError as error:
        if error.not_found:
            return  # it is made without any
        raise
    if not owns_replicas(live):
        return
    meta = manifest["metadata"]
    part = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            # Whoever has written meanwhile, the autoscaler too: a conflict, and another try.
            "resourceVersion": live["metadata"]["resourceVersion"],
        },
        "spec": {"replicas": live["spec"]["replicas"]},
    }
    await kube.apply(part, _HANDOVER, force=True, deadline=deadline)
