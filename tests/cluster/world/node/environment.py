"""What a container is told by its pod: environment variables, downward fields, expansion of $(NAME).

In: the pod object and a container's spec. Out: the environment of the process.
Source: Kubernetes API, EnvVar, EnvFromSource and "Dependent environment variables".
Must never: fail on a field it does not know: that field is empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cluster.world import addresses as at
from cluster.world.node.objects import Objects

_STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFERENCE = re.compile(r"\$\$|\$\(([^()$]+)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]$")


async def environment_of(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    address: str,
    objects: Objects,
    *,
    path: str,
    image_env: Mapping[str, str],
) -> dict[str, str]:
    """Return a container's environment; MissingObject when a ConfigMap or Secret it needs is not there."""
    namespace = pod["metadata"]["namespace"]
    env = {
        "PATH": f"{path}:{_STANDARD_PATH}",
        "HOME": "/root",
        "HOSTNAME": hostname_of(pod),
        "KUBERNETES_SERVICE_HOST": at.API_SERVICE,
        "KUBERNETES_SERVICE_PORT": "443",
        "KUBERNETES_SERVICE_PORT_HTTPS": "443",
        **image_env,
    }
    for source in container.get("envFrom") or []:
        kind = "configMapRef" if "configMapRef" in source else "secretRef"
        data = await objects.data(_PLURAL[kind], namespace, source[kind])
        prefix = source.get("prefix", "")
        env.update({prefix + key: value.decode() for key, value in data.items()})
    for variable in container.get("env") or []:
        origin = variable.get("valueFrom")
        if not origin:
            env[variable["name"]] = expand(variable.get("value", ""), env)
            continue
        value = await _value_from(pod, origin, address, objects)
        if value is not None:
            env[variable["name"]] = value
    return env


_PLURAL = {
    "configMapRef": "configmaps",
    "secretRef": "secrets",
    "configMapKeyRef": "configmaps",
    "secretKeyRef": "secrets",
}


async def _value_from(
    pod: Mapping[str, Any], origin: Mapping[str, Any], address: str, objects: Objects
) -> str | None:
    if "fieldRef" in origin:
        return field_of(pod, origin["fieldRef"]["fieldPath"], address)
    if "resourceFieldRef" in origin:
        return "0"
    kind = "configMapKeyRef" if "configMapKeyRef" in origin else "secretKeyRef"
    wanted = origin[kind]
    data = await objects.data(_PLURAL[kind], pod["metadata"]["namespace"], wanted)
    found = data.get(wanted["key"])
    return None if found is None else found.decode()


def field_of(pod: Mapping[str, Any], path: str, address: str) -> str:
    """Return a field of the downward API."""
    meta, spec = pod["metadata"], pod["spec"]
    if keyed := _KEYED.match(path):
        return str((meta.get(keyed[1]) or {}).get(keyed[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = sorted((meta.get(path.partition(".")[2]) or {}).items())
        return "\n".join(f"{key}={json.dumps(value)}" for key, value in pairs)
    fields = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": at.NODE,
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": address,
        "status.podIPs": address,
        "status.hostIP": at.NODE_ADDRESS,
        "status.hostIPs": at.NODE_ADDRESS,
    }
    return str(fields.get(path, ""))


def hostname_of(pod: Mapping[str, Any]) -> str:
    """Return the name a pod has for itself."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63]


def expand(text: str, env: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; unknown names stay, $$ is one $."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else env.get(found[1], found[0])

    return _REFERENCE.sub(value, text)
