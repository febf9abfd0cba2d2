"""Manifests that many tests need: a backend that echoes, a pod that sleeps.

In: names. Out: manifests for `admin.apply`.
Must never: hold what only one test needs.
"""

from __future__ import annotations

from typing import Any

from cluster.world.images import ECHO_IMAGE

#: Where the echo backend listens.
ECHO_PORT = 3000


def echo(
    namespace: str,
    name: str = "echo",
    *,
    replicas: int = 1,
    service: dict[str, Any] | None = None,
    grace: int = 5,
) -> list[dict[str, Any]]:
    """Return a Deployment of the conformance suite's echo server and a Service with port 80 before it.

    It answers with JSON: path, host, method, headers, namespace, pod. `service` is added to the Service's spec.
    """
    labels = {"app": name}
    container = {
        "name": "echo",
        "image": f"{ECHO_IMAGE}:v1",
        "env": [
            _field("POD_NAME", "metadata.name"),
            _field("NAMESPACE", "metadata.namespace"),
            {"name": "HTTP_PORT", "value": str(ECHO_PORT)},
        ],
        "ports": [{"name": "http", "containerPort": ECHO_PORT}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 2},
        # As backends should: serve until everybody has heard of the end, on a slow machine too.
        "lifecycle": {"preStop": {"sleep": {"seconds": min(3, grace - 1)}}},
    }
    meta = {"name": name, "namespace": namespace}
    template = {
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": grace, "containers": [container]},
    }
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": template,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": labels, "ports": ports, **(service or {})},
        },
    ]


def pod(namespace: str, name: str, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a pod of one container named "main"; by default it ends at once when told to."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            **spec,
            "containers": [{"name": "main", "image": "busybox", **container}],
        },
    }


def shell(script: str) -> dict[str, Any]:
    """Return the command of a container that runs a script."""
    return {"command": ["sh", "-c", script]}


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
