"""YAML documents that many small configurations share."""

from __future__ import annotations


def backend(
    name: str = "web",
    namespace: str = "",
    *,
    port: str = "port: 80",
    target: str = "port: 80",
    address: str = "10.0.0.1",
) -> str:
    """Return a Service and its EndpointSlice; `port` and `target` are the insides of flow mappings."""
    place = f", namespace: {namespace}" if namespace else ""
    return f"""apiVersion: v1
kind: Service
metadata: {{name: {name}{place}}}
spec: {{ports: [{{{port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1{place}, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{{target}}}]
endpoints: [{{addresses: [{address}]}}]
"""
