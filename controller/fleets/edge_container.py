"""The container `edge`: the proxy itself, `edgefast proxy`.

In: a fleet and the placement.
Out: the container and its volumes. Listener ports are not in it: proxies read them from their
tables, and a changed listener must not roll the pods.
Source: spec sections 2, 5; ports 19001 (metrics), 19003 (readiness).
Must never: depend on anything that does not require new pods.
"""

from __future__ import annotations

from typing import Any

from controller.fleets.placement import (
    CA_FOLDER,
    CA_KEY,
    CLIENT_FOLDER,
    EDGE,
    METRICS_PORT,
    READY_PORT,
    SHUTDOWN_PORT,
    STATE_FOLDER,
    TOKEN_FILE,
    TOKEN_FOLDER,
    TOKEN_SECONDS,
    XDS_PORT,
    Manifest,
    Placement,
    client_secret_name,
)
from controller.fleets.shutdown_container import seconds_text
from edgefast import ir

#: Requests without limits: a proxy that is throttled or killed for memory loses requests.
_RESOURCES = {"requests": {"cpu": "100m", "memory": "256Mi"}}
#: Of the pod's own variables, which no EdgeProxy may take.
_FIELDS = {
    "POD_IP": "status.podIP",
    "POD_NAME": "metadata.name",
    "POD_NAMESPACE": "metadata.namespace",
}
_READABLE = 0o440  # by the group, which the pod's fsGroup is


def render_edge(infra: ir.Infra, place: Placement) -> Manifest:
    """Return the container."""
    container: Manifest = {
        "name": EDGE,
        "image": infra.pod.image or place.image,
        "args": _args(infra, place),
        "env": [
            *(_variable(one) for one in infra.pod.env if one["name"] not in _FIELDS),
            *(
                {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
                for name, path in _FIELDS.items()
            ),
        ],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "ready", "containerPort": READY_PORT, "protocol": "TCP"},
        ],
        "resources": _RESOURCES if infra.pod.resources is None else infra.pod.resources,
        # Ready means: it has tables. Until then, and for as long as a controller may be away, it is only waited for.
        "startupProbe": _probe("/ready", period=1, failures=600),
        "readinessProbe": _probe("/ready", period=5, failures=1),
        "livenessProbe": _probe("/live", period=10, failures=6),
        "lifecycle": {"preStop": {"httpGet": _get("/shutdown/ready", SHUTDOWN_PORT)}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "ca", "mountPath": CA_FOLDER, "readOnly": True},
            _credential_mount(place),
            {"name": "state", "mountPath": STATE_FOLDER},
        ],
    }
    if place.pull_policy:
        container["imagePullPolicy"] = place.pull_policy
    return container


def edge_volumes(infra: ir.Infra, place: Placement) -> list[Manifest]:
    """Return the volumes that the container mounts."""
    return [
        {"name": "ca", "configMap": {"name": infra.name, "defaultMode": 0o444}},
        _credential_volume(infra, place),
        # The last good tables have keys in them: in memory, gone with the pod.
        {"name": "state", "emptyDir": {"medium": "Memory"}},
    ]


def _args(infra: ir.Infra, place: Placement) -> list[str]:
    if place.gateway_namespace_mode:
        credential = ["--token", f"{TOKEN_FOLDER}/{TOKEN_FILE}"]
    else:
        credential = ["--cert", f"{CLIENT_FOLDER}/tls.crt", "--key", f"{CLIENT_FOLDER}/tls.key"]
    return [
        "proxy",
        *("--xds", f"{place.host}:{XDS_PORT}"),
        *("--ca", f"{CA_FOLDER}/{CA_KEY}"),
        *credential,
        *("--node", "$(POD_NAME)"),
        *("--state-dir", STATE_FOLDER),
        *(("--workers", str(infra.workers)) if infra.workers else ()),
        *("--drain-timeout", seconds_text(infra.drain_timeout)),
        *("--min-drain", seconds_text(infra.min_drain)),
    ]


def _variable(one: dict[str, Any]) -> Manifest:
    return {key: value for key, value in one.items() if value is not None}


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return {
        "httpGet": _get(path, READY_PORT),
        "periodSeconds": period,
        "timeoutSeconds": min(period, 5),
        "failureThreshold": failures,
    }


def _get(path: str, port: int) -> Manifest:
    return {"path": path, "port": port, "scheme": "HTTP"}


def _credential_mount(place: Placement) -> Manifest:
    if place.gateway_namespace_mode:
        return {"name": "sa-token", "mountPath": TOKEN_FOLDER, "readOnly": True}
    return {"name": "client", "mountPath": CLIENT_FOLDER, "readOnly": True}


def _credential_volume(infra: ir.Infra, place: Placement) -> Manifest:
    if not place.gateway_namespace_mode:
        secret = {"secretName": client_secret_name(infra.name), "defaultMode": _READABLE}
        return {"name": "client", "secret": secret}
    token = {"path": TOKEN_FILE, "audience": place.host, "expirationSeconds": TOKEN_SECONDS}
    sources = [{"serviceAccountToken": token}]
    return {"name": "sa-token", "projected": {"defaultMode": _READABLE, "sources": sources}}
