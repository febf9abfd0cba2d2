"""Secrets in memory, with the answers of an API server: 404, AlreadyExists, Conflict."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from typing import Any

from controller.kube.errors import ApiError

__all__ = ["Store"]


class Store:
    """A `SecretApi`. `before_write` is called before every write: another writer."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self._version = 0

    async def get(self, path: str) -> Any:
        if path not in self.objects:
            raise ApiError(404, "NotFound", "no such Secret")
        return copy.deepcopy(self.objects[path])

    async def create(self, manifest: Mapping[str, Any]) -> Any:
        path = _path(manifest)
        if path in self.objects:
            raise ApiError(409, "AlreadyExists", "there is one")
        return self._put(path, manifest)

    async def replace(self, manifest: Mapping[str, Any]) -> Any:
        path = _path(manifest)
        old = await self.get(path)
        if old["metadata"]["resourceVersion"] != manifest["metadata"].get("resourceVersion"):
            raise ApiError(409, "Conflict", "it has been changed")
        return self._put(path, manifest)

    def data(self, namespace: str, name: str) -> dict[str, str]:
        """Return a Secret's values as text."""
        found = self.objects[f"/api/v1/namespaces/{namespace}/secrets/{name}"]
        return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}

    def set(self, manifest: Mapping[str, Any]) -> None:
        """Put a Secret there, whatever was there."""
        self._put(_path(manifest), manifest)

    def _put(self, path: str, manifest: Mapping[str, Any]) -> Any:
        assert manifest["apiVersion"] == "v1" and manifest["kind"] == "Secret"
        self._version += 1
        self.writes += 1
        kept = copy.deepcopy(dict(manifest))
        kept["metadata"] = {**kept["metadata"], "resourceVersion": str(self._version)}
        self.objects[path] = kept
        return copy.deepcopy(kept)


def _path(manifest: Mapping[str, Any]) -> str:
    meta = manifest["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/secrets/{meta['name']}"
