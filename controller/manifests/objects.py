"""Shared parts of all objects of an installation: labels, metadata, a hardened container.

In: a release and its values.
Out: parts of objects, as plain values. `templates/_names.tpl` has the same for helm.
Must never: contain a whole object.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

import edgefast
from controller.manifests.naming import CHART, Release
from controller.manifests.values import ChartValues, Image

Manifest = dict[str, Any]
VERSION = edgefast.__version__
USER = 65532
#: Tells releases of one name in different namespaces apart, on objects that are in no namespace or in another one.
RELEASE_NAMESPACE = "gateway.edge.io/release-namespace"


class Install(Struct, frozen=True):
    """What is rendered: a release, its values, and the configuration as it was written."""

    release: Release
    values: ChartValues
    config: Manifest


def selector(release: Release) -> dict[str, str]:
    """Return the labels that only the controller's pods carry."""
    return {
        "app.kubernetes.io/instance": release.name,
        "app.kubernetes.io/name": "edge-gateway",
        "control-plane": "edge-gateway",
    }


def labels(release: Release) -> dict[str, str]:
    """Return the labels of every object; the first three say whose it is, wherever it is."""
    return {
        "app.kubernetes.io/instance": release.name,
        "app.kubernetes.io/name": "edge-gateway",
        RELEASE_NAMESPACE: release.namespace,
        "app.kubernetes.io/version": VERSION,
        "helm.sh/chart": f"{CHART}-{VERSION}",
    }


def metadata(
    release: Release,
    name: str,
    annotations: dict[str, str] | None = None,
    namespace: str | None = None,
) -> Manifest:
    """Return the metadata of an object; `namespace` "" is none, absent the release's."""
    result: Manifest = {"name": name, "labels": labels(release)}
    where = release.namespace if namespace is None else namespace
    if where:
        result["namespace"] = where
    if annotations:
        result["annotations"] = annotations
    return result


def reference(image: Image) -> str:
    """Return an image as a container runtime takes it."""
    tag, _, digest = image.tag.partition("@")
    digest = image.digest or digest
    return f"{image.repository}:{tag or VERSION}" + (f"@{digest}" if digest else "")


def container_security() -> Manifest:
    """Return what a container may not do."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def pod_security() -> Manifest:
    """Return who a pod runs as."""
    return {
        "fsGroup": USER,
        "runAsGroup": USER,
        "runAsNonRoot": True,
        "runAsUser": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def environment() -> list[Manifest]:
    """Return what a container of ours knows about its pod."""
    fields = {
        "POD_IP": "status.podIP",
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
    }
    return [
        {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
        for name, path in fields.items()
    ]
