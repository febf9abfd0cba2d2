"""The controller's NetworkPolicy: the allowed clients. It applies if the cluster's network enforces policies.

In: `Install`.
Out: the object with networkPolicy.enabled, else nothing. Proxies reach the stream's ports, and
other replicas reach the relay. Every client reaches the probes (kubelets connect from their nodes).
The clients in the values reach the metrics. Outgoing connections are not restricted, because no
policy can name the API server's address.
Must never: select the proxies; their ports belong to the Gateways.
"""

from __future__ import annotations

from controller.manifests.objects import Install, Manifest, metadata, selector
from controller.manifests.roles import own_namespaces
from controller.manifests.workload import PORTS

#: Labels of every proxy's pod (edgefast/translate/fleet/infra.py).
PROXIES = {
    "app.kubernetes.io/component": "proxy",
    "app.kubernetes.io/managed-by": "edge-gateway",
}


def render_network_policy(install: Install) -> list[Manifest]:
    """The NetworkPolicy, with networkPolicy.enabled."""
    release, values = install.release, install.values.network_policy
    if not values.enabled:
        return []
    own = {"podSelector": {"matchLabels": selector(release)}}
    proxies: Manifest = {"podSelector": {"matchLabels": PROXIES}}
    if own_namespaces(install):
        proxies["namespaceSelector"] = {}
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata(release, release.base),
            "spec": {
                "podSelector": own["podSelector"],
                "policyTypes": ["Ingress"],
                "ingress": [
                    _rule(["xds", "xds-token"], [proxies]),
                    _rule(["relay"], [own]),
                    _rule(["metrics"], list(values.metrics_from)),
                    _rule(["health"], []),
                ],
            },
        }
    ]


def _rule(ports: list[str], peers: list[Manifest]) -> Manifest:
    rule: Manifest = {"ports": [{"port": PORTS[one], "protocol": "TCP"} for one in ports]}
    return {"from": peers, **rule} if peers else rule
