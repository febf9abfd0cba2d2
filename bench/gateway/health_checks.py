"""Health checks of a route's backend: a BackendTrafficPolicy, whose fields both gateways read.

In: the API version of a gateway's policies, a route. Out: the policy. Must never: differ between gateways in more than its API version.
"""

from __future__ import annotations

from cluster.world.api import Manifest


def health_checks(api_version: str, namespace: str, route: str) -> Manifest:
    """Return the policy of an HTTPRoute."""
    return {
        "apiVersion": api_version,
        "kind": "BackendTrafficPolicy",
        "metadata": {"namespace": namespace, "name": route},
        "spec": {
            "targetRefs": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": route}
            ],
            "healthCheck": {
                "active": {
                    "type": "HTTP",
                    "interval": "1s",
                    "timeout": "1s",
                    "unhealthyThreshold": 1,
                    "healthyThreshold": 1,
                    "http": {"path": "/health"},
                }
            },
        },
    }
