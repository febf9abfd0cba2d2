"""Service of a fleet: its address, and every listener port.

In: a fleet and the placement.
Out: the manifest. Addresses that Gateways request become `loadBalancerIP` (one only) or, without a
load balancer, `externalIPs`; the Gateway's status lists the unavailable ones.
Source: spec section 2 (Service type, ports); Gateway API GatewaySpec.addresses.
Must never: set fields that the cluster allocates: cluster IPs, node ports.
"""

from __future__ import annotations

from controller.fleets.metadata import render_metadata
from controller.fleets.placement import Manifest, Placement
from edgefast import ir


def render_service(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the Service in front of the proxies."""
    requested = infra.service
    spec: Manifest = {
        "type": requested.type,
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
    if requested.external_traffic_policy:
        spec["externalTrafficPolicy"] = requested.external_traffic_policy
    if requested.type == "LoadBalancer":
        if requested.load_balancer_class:
            spec["loadBalancerClass"] = requested.load_balancer_class
        if requested.load_balancer_source_ranges:
            spec["loadBalancerSourceRanges"] = list(requested.load_balancer_source_ranges)
        if requested.addresses:
            spec["loadBalancerIP"] = requested.addresses[0]
    elif requested.addresses:
        spec["externalIPs"] = list(requested.addresses)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": render_metadata(
            infra,
            place,
            labels=requested.labels,
            annotations=requested.annotations,
            of_service=True,
        ),
        "spec": spec,
    }
