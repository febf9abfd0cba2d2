"""The head of small worlds in YAML: a class of ours and its Gateway `gw` in namespace default, a line for each listener."""

from __future__ import annotations


def gateway(*listeners: str) -> str:
    """Return two documents and what stands before the next one; a listener is the inside of a flow mapping."""
    return (
        """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: edge
  listeners:
"""
        + "".join(f"  - {{{one}}}\n" for one in listeners)
        + "---\n"
    )
