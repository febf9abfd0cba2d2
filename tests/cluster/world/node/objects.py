"""Secrets, ConfigMaps and tokens as pods use them.

In: the agent's client. Out: key -> bytes; a token of a pod's ServiceAccount with its expiry.
Must never: give old data while the API server answers; while it does not, a container that starts again gets the last
that was seen, as a kubelet's cache would.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from cluster.world.node.client import ApiError, Client


class MissingObject(Exception):
    """A Secret, ConfigMap or ServiceAccount that a pod needs is not there; the pod waits for it."""


class Objects:
    """What pods may ask for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: dict[tuple[str, str, str], dict[str, bytes]] = {}

    async def data(self, plural: str, namespace: str, ref: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the data of a Secret or ConfigMap; {} when it is optional and not there."""
        name = ref.get("secretName") or ref["name"]
        key = (plural, namespace, name)
        try:
            found = await self._client.get(f"/api/v1/namespaces/{namespace}/{plural}/{name}")
        except ApiError as error:
            if error.status != 404:
                raise
            if ref.get("optional"):
                return {}
            raise MissingObject(f'{plural.removesuffix("s")} "{name}" not found') from error
        except (Client.Unreachable, TimeoutError):
            if key not in self._seen:
                raise
            return self._seen[key]
        data = self._seen[key] = data_of(plural, found)
        return data

    async def token(self, pod: Mapping[str, Any], audience: str | None, seconds: int) -> bytes:
        """Return a token bound to a pod."""
        meta = pod["metadata"]
        account = pod["spec"].get("serviceAccountName", "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec: dict[str, Any] = {"expirationSeconds": seconds, "boundObjectRef": bound}
        if audience:
            spec["audiences"] = [audience]
        path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = await self._client.post(path, body)
        except ApiError as error:
            if error.status == 404:
                raise MissingObject(f'serviceaccount "{account}" not found') from error
            raise
        return str(answer["status"]["token"]).encode()


def data_of(plural: str, obj: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the data of a Secret or ConfigMap object."""
    plain = (obj.get("data") or {}).items()
    if plural == "secrets":
        return {key: base64.b64decode(value) for key, value in plain}
    data = {key: value.encode() for key, value in plain}
    binary = (obj.get("binaryData") or {}).items()
    return data | {key: base64.b64decode(value) for key, value in binary}
