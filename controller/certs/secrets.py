"""Secrets of the controller's namespace: read, create once, replace with optimistic concurrency.

In: names and text values.
Out: `Stored`, or None if the Secret does not exist; ApiError of the call. A Secret is replaced only
in the version that was read.
Must never: access Secrets of another namespace, or put a value into an error or a log.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from controller.kube.apis import api_of
from controller.kube.errors import ApiError

__all__ = ["MANAGED_BY", "SecretApi", "Secrets", "Stored", "secret_manifest"]

_API = api_of("v1", "Secret")
MANAGED_BY = "edge-gateway"
_LABELS = {
    "app.kubernetes.io/component": "controller",
    "app.kubernetes.io/managed-by": MANAGED_BY,
    "app.kubernetes.io/name": "edge",
}


class SecretApi(Protocol):
    """What is needed of `controller.kube.client.Kube`."""

    async def get(self, path: str) -> Any:
        """Return an object."""

    async def create(self, manifest: Mapping[str, Any]) -> Any:
        """Create an object and return it."""

    async def replace(self, manifest: Mapping[str, Any]) -> Any:
        """Replace the object that has the manifest's resourceVersion, and return it."""


class Stored(msgspec.Struct, frozen=True):
    """A Secret as it was read. Values that are no text are left out."""

    name: str
    resource_version: str
    data: Mapping[str, str]
    manifest: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Stored({self.name!r})"


def secret_manifest(
    namespace: str,
    name: str,
    data: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the manifest of a Secret of type kubernetes.io/tls."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": metadata,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


class Secrets:
    """Reads, creates and replaces Secrets of the controller's namespace."""

    def __init__(self, kube: SecretApi, namespace: str) -> None:
        self.namespace = namespace
        self._kube = kube

    async def read(self, name: str) -> Stored | None:
        """Return a Secret."""
        try:
            return _stored(await self._kube.get(_API.path(self.namespace, name)))
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def create(self, name: str, data: Mapping[str, str], *, opaque: bool = False) -> Stored:
        """Make a Secret (`opaque`: not one of type kubernetes.io/tls); ApiError.exists when somebody was faster."""
        manifest = secret_manifest(self.namespace, name, data, _LABELS)
        if opaque:
            manifest["type"] = "Opaque"
        return _stored(await self._kube.create(manifest))

    async def replace(self, old: Stored, data: Mapping[str, str]) -> Stored:
        """Replace a Secret's data, all of it; ApiError.conflict when it is not as it was read."""
        fresh = secret_manifest(self.namespace, old.name, data)
        manifest = {**old.manifest, "data": fresh["data"]}
        return _stored(await self._kube.replace(manifest))


def _stored(manifest: Mapping[str, Any]) -> Stored:
    data = {}
    for key, value in (manifest.get("data") or {}).items():
        try:
            data[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
    meta = manifest["metadata"]
    kind = {"apiVersion": "v1", "kind": "Secret"}
    return Stored(meta["name"], meta.get("resourceVersion", ""), data, {**manifest, **kind})
