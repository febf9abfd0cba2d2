"""Addresses of a fleet: where clients reach its Service.

In: a live Service, the nodes, the nodes with ready pods.
Out: texts, each once, in a stable order. The Service type determines them: the load balancer's
addresses; the addresses of nodes (external ones preferred); the cluster IPs. With
externalTrafficPolicy Local, a node without a ready pod drops packets and is omitted.
Source: spec section 2 (status.addresses); Kubernetes core v1 Service, Node.
Must never: report an address that is only requested, or report a missing node port as a failure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def service_addresses(
    service: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]], hosts: Collection[str]
) -> tuple[str, ...]:
    """Return the addresses of a Service; `hosts` are the names of nodes with ready pods."""
    spec = service["spec"]
    type_ = spec.get("type", "ClusterIP")
    found: list[str] = []
    if type_ == "LoadBalancer":
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        found = [one.get("ip") or one.get("hostname") or "" for one in ingress]
    elif type_ == "NodePort":
        local = spec.get("externalTrafficPolicy") == "Local"
        names = sorted(name for name in nodes if not local or name in hosts)
        found = [one for name in names for one in _node_addresses(nodes[name])]
    else:
        found = [one for one in spec.get("clusterIPs") or () if one != "None"]
    if type_ != "LoadBalancer":
        found = [*(spec.get("externalIPs") or ()), *found]
    return tuple(dict.fromkeys(one for one in found if one))


def _node_addresses(node: Mapping[str, Any]) -> Iterable[str]:
    """Return a node's external addresses, or, without any, its internal ones."""
    addresses = node.get("addresses") or ()
    for kind in ("ExternalIP", "InternalIP"):
        found = [one["address"] for one in addresses if one.get("type") == kind]
        if found:
            return found
    return ()
