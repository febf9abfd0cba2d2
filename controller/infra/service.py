"""Service of a fleet: its address, and every listener port.

In: a fleet and the placement. Out: the manifest. Addresses that Gateways ask for become `loadBalancerIP` (one is all
there is room for) or, without a load balancer, `externalIPs`; the Gateway's status says which there are not.
Source: spec section 2 (Service type, ports); Gateway API GatewaySpec.addresses.
Must never: set what the cluster allocates: cluster IPs, node ports.
"""

from __future__ import annotations

from controller.infra.metadata import render_metadata
from controller.infra.placement import Manifest, Placement
from edgefast import ir


def render_service(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the Service in front of the proxies."""
    wish = infra.service
    spec: Manifest = {
        "type": wish.type,
        "selector": dict(infra.selector),
        "ports": [
            {
                "name": one.name,
                "port": one.port,
                "protocol": one.protocol,
                "targetPort": one.target,
            }
            for one in infra.ports
        ],
    }
    if wish.external_traffic_policy:
        spec["externalTrafficPolicy"] = wish.external_traffic_policy
    if wish.type == "LoadBalancer":
        if wish.load_balancer_class:
            spec["loadBalancerClass"] = wish.load_balancer_class
        if wish.load_balancer_source_ranges:
            spec["loadBalancerSourceRanges"] = list(wish.load_balancer_source_ranges)
        if wish.addresses:
            spec["loadBalancerIP"] = wish.addresses[0]
    elif wish.addresses:
        spec["externalIPs"] = list(wish.addresses)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": render_metadata(
            infra, place, labels=wish.labels, annotations=wish.annotations, of_service=True
        ),
        "spec": spec,
    }
