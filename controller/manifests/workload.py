"""The controller's Deployment, its HorizontalPodAutoscaler and its PodDisruptionBudget.

In: `Install`. Out: objects, each as `templates/<name>.yaml` renders it.
Source of the ports: spec section 2; 8081 answers probes, 19000 (admin) stays on loopback inside.
Must never: run as root, or write to its file system.
"""

from __future__ import annotations

from typing import Any

import msgspec

from controller.manifests.canonical import digest
from controller.manifests.objects import (
    Install,
    Manifest,
    container_security,
    environment,
    labels,
    metadata,
    pod_security,
    reference,
    selector,
)
from controller.manifests.values import LocalSecret, PodValues

CONFIG_FOLDER = "/etc/edge-gateway"
CERTS_FOLDER = "/certs"
HEALTH_PORT = 8081
#: Ports that other pods reach: name -> number. `relay` is for the other replicas alone, so no Service has it.
PORTS = {
    "xds": 18000,
    "xds-token": 18001,
    "relay": 18002,
    "metrics": 19001,
    "health": HEALTH_PORT,
}


def render_deployment(install: Install) -> Manifest:
    """The controller."""
    release, values = install.release, install.values.deployment
    spec: Manifest = {
        "selector": {"matchLabels": selector(release)},
        "template": {
            "metadata": {
                "annotations": {
                    "checksum/config": digest(install.config),
                    "kubectl.kubernetes.io/default-container": "edge-gateway",
                    **values.pod.annotations,
                },
                "labels": {**values.pod.labels, **labels(release), **selector(release)},
            },
            "spec": _pod(install),
        },
    }
    if not install.values.hpa.enabled:
        spec["replicas"] = values.replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(release, release.base, values.annotations),
        "spec": spec,
    }


def _pod(install: Install) -> Manifest:
    release, values = install.release, install.values.deployment
    pod: Manifest = {
        "serviceAccountName": release.base,
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 30,
        "containers": [_container(install)],
        "volumes": [
            {"name": "config", "configMap": {"name": release.config}},
            {"name": "certs", "secret": {"secretName": release.base, "defaultMode": 0o440}},
        ],
    }
    if values.image_pull_secrets:
        pod["imagePullSecrets"] = plain(values.image_pull_secrets)
    if values.priority_class_name:
        pod["priorityClassName"] = values.priority_class_name
    return {**pod, **place(values.pod, selector(release))}


def place(pod: PodValues, own: dict[str, str]) -> Manifest:
    """Return where pods may run; `own` are the labels that select them."""
    result: Manifest = {}
    if pod.affinity:
        result["affinity"] = pod.affinity
    if pod.node_selector:
        result["nodeSelector"] = pod.node_selector
    if pod.tolerations:
        result["tolerations"] = plain(pod.tolerations)
    if pod.topology_spread_constraints:
        result["topologySpreadConstraints"] = [
            {"labelSelector": {"matchLabels": own}, **one}
            for one in pod.topology_spread_constraints
        ]
    return result


def _container(install: Install) -> Manifest:
    values = install.values.deployment.edge_gateway
    return {
        "name": "edge-gateway",
        "image": reference(values.image),
        "imagePullPolicy": values.image_pull_policy,
        "args": _arguments(install),
        "env": [*environment(), *plain(values.env)],
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()
        ],
        "startupProbe": _probe("/healthz", 1, 120),
        "livenessProbe": _probe("/healthz", 10, 3),
        "readinessProbe": _probe("/readyz", 2, 2),
        "resources": plain(values.resources),
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": "certs", "mountPath": CERTS_FOLDER, "readOnly": True},
        ],
    }


def _arguments(install: Install) -> list[str]:
    proxy = install.values.proxy
    return [
        "run",
        f"--config={CONFIG_FOLDER}/edge-gateway.yaml",
        "--namespace=$(POD_NAMESPACE)",
        f"--name={install.release.base}",
        f"--certs={CERTS_FOLDER}",
        f"--cluster-domain={install.values.kubernetes_cluster_domain}",
        f"--proxy-image={reference(proxy.image)}",
        f"--proxy-pull-policy={proxy.image_pull_policy}",
        *_pull_secrets(proxy.image_pull_secrets),
    ]


def _pull_secrets(secrets: tuple[LocalSecret, ...]) -> list[str]:
    return [f"--proxy-pull-secret={one.name}" for one in secrets]


def _probe(path: str, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": period,
        # Ten thousand routes read at once keep the loop busy for longer than the default of a second.
        "timeoutSeconds": min(period, 5),
        "failureThreshold": failures,
    }


def render_autoscaler(install: Install) -> list[Manifest]:
    """The HorizontalPodAutoscaler, with hpa.enabled."""
    values, release = install.values.hpa, install.release
    if not values.enabled:
        return []
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": release.base},
        "minReplicas": values.min_replicas,
        "maxReplicas": values.max_replicas,
        "metrics": list(values.metrics) or [{"type": "Resource", "resource": cpu}],
    }
    return [
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata(release, release.base),
            "spec": spec,
        }
    ]


def render_budget(install: Install) -> list[Manifest]:
    """The PodDisruptionBudget, with a bound."""
    bounds = plain(install.values.pod_disruption_budget)
    if not bounds:
        return []
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata(install.release, install.release.base),
            "spec": {**bounds, "selector": {"matchLabels": selector(install.release)}},
        }
    ]


def plain(value: Any) -> Any:
    """Return structs as they are written in documents; tuples become lists."""
    return msgspec.json.decode(msgspec.json.encode(value))
