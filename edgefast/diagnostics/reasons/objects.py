"""Base objects for the examples of all reasons: a small shop that is served without a problem.

In: nothing.
Out: `BASE`, and functions that create the objects of examples in the same way.
"""

from __future__ import annotations

import textwrap

__all__ = ["BASE", "backend_tls", "gateway", "listener_set", "route", "security"]

_API = "apiVersion: gateway.networking.k8s.io/v1\n"

BASE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: edge
  listeners: [{name: http, port: 8080, protocol: HTTP}]
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-1, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1]}]
ports: [{name: http, port: 9001}]
"""


def gateway(spec: str, name: str = "edge") -> str:
    """A Gateway of the class; `spec` from the first column on."""
    return f"{_API}kind: Gateway\nmetadata: {{name: {name}}}\nspec:\n  gatewayClassName: edge\n{_in(spec)}"


def route(spec: str, name: str = "shop", parent: str = "{name: edge}") -> str:
    """An HTTPRoute; `spec` from the first column on."""
    return (
        f"{_API}kind: HTTPRoute\nmetadata: {{name: {name}}}\nspec:\n"
        f"  parentRefs: [{parent}]\n{_in(spec)}"
    )


def listener_set(spec: str, name: str = "more") -> str:
    """A ListenerSet of the Gateway."""
    return f"{_API}kind: ListenerSet\nmetadata: {{name: {name}}}\nspec:\n  parentRef: {{name: edge}}\n{_in(spec)}"


def backend_tls(spec: str, name: str = "shop") -> str:
    """A BackendTLSPolicy of Service shop."""
    return (
        f"{_API}kind: BackendTLSPolicy\nmetadata: {{name: {name}}}\nspec:\n"
        f'  targetRefs: [{{group: "", kind: Service, name: shop}}]\n{_in(spec)}'
    )


def security(target: str, spec: str, name: str = "shop") -> str:
    """A SecurityPolicy; `target` without its group, `spec` from the first column on."""
    group = "{group: gateway.networking.k8s.io, "
    return (
        f"apiVersion: gateway.edge.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {{name: {name}}}\nspec:\n"
        f"  targetRefs: [{group}{target[1:]}]\n{_in(spec)}"
    )


def _in(text: str) -> str:
    return textwrap.indent(text.strip() + "\n", "  ")
