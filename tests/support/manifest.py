"""Build Kubernetes objects as their JSON has them."""

from __future__ import annotations

from typing import Any

_CORE = "ConfigMap Namespace Pod Secret Service ServiceAccount"
_GATEWAY = "BackendTLSPolicy Gateway GatewayClass GRPCRoute HTTPRoute ListenerSet ReferenceGrant TCPRoute TLSRoute UDPRoute"
_EDGE = "Backend BackendTrafficPolicy ClientTrafficPolicy EdgeProxy HTTPRouteFilter RateLimitFilter SecurityPolicy"
_VERSIONS = {
    **dict.fromkeys(_CORE.split(), "v1"),
    **dict.fromkeys(_GATEWAY.split(), "gateway.networking.k8s.io/v1"),
    **dict.fromkeys(_EDGE.split(), "gateway.edge.io/v1alpha1"),
    "Deployment": "apps/v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "Lease": "coordination.k8s.io/v1",
}


def manifest(
    ref: str, spec: dict[str, Any] | None = None, *, api: str = "", **fields: Any
) -> dict[str, Any]:
    """Return "Kind namespace/name" or "Kind name"; `api` is its apiVersion where the kind has another one.

    Labels and the like are part of metadata.
    """
    kind, _, path = ref.partition(" ")
    namespace, slash, name = path.rpartition("/")
    meta: dict[str, Any] = {"name": name}
    if slash:
        meta["namespace"] = namespace
    for one in ("labels", "annotations", "creationTimestamp", "generation"):
        if one in fields:
            meta[one] = fields.pop(one)
    if spec is not None:
        fields = {"spec": spec, **fields}
    return {"apiVersion": api or _VERSIONS[kind], "kind": kind, "metadata": meta, **fields}
