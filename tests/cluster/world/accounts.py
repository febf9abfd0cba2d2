"""Tokens and kubeconfigs of ServiceAccounts.

In: an admin `Api`. Out: what a pod of that account would have: its bearer token, a kubeconfig, an `Api` of its own.
Must never: give an account rights; tests bind roles themselves, or install the chart's.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cluster.world.api import Api, ApiError
from cluster.world.kubeconfig import write_kubeconfig


class Accounts:
    """ServiceAccounts of one API server."""

    def __init__(self, admin: Api, folder: Path) -> None:
        self._admin, self._folder = admin, folder

    def ensure(self, namespace: str, name: str) -> None:
        """Create the namespace and the account when they are not there."""
        meta = {"name": name, "namespace": namespace}
        self.ensure_namespace(namespace)
        self._create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})

    def ensure_namespace(self, namespace: str) -> None:
        """Create a namespace when it is not there."""
        self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    def token(
        self,
        namespace: str,
        name: str,
        *,
        audiences: Iterable[str] = (),
        seconds: int = 3600,
        pod: tuple[str, str] | None = None,
    ) -> str:
        """Return a token (TokenRequest); `pod` is the (name, uid) it is bound to, `seconds` at least 600."""
        self.ensure(namespace, name)
        spec: dict[str, Any] = {"audiences": list(audiences), "expirationSeconds": seconds}
        if pod is not None:
            bound = {"kind": "Pod", "apiVersion": "v1", "name": pod[0], "uid": pod[1]}
            spec["boundObjectRef"] = bound
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = self._admin.post(
            path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        )
        return str(answer["status"]["token"])

    def kubeconfig_for(self, account: str) -> Path:
        """Return a kubeconfig of "namespace/name", its token good for an hour."""
        namespace, name = account.split("/")
        server = self._admin.server
        return write_kubeconfig(
            self._folder / f"{namespace}.{name}.kubeconfig",
            server.url,
            server.ca,
            token=self.token(namespace, name),
            namespace=namespace,
        )

    def api_for(self, account: str) -> Api:
        """Return the API as "namespace/name" sees it."""
        namespace, name = account.split("/")
        return Api(self._admin.server, token=self.token(namespace, name))

    def _create(self, manifest: dict[str, Any]) -> None:
        try:
            self._admin.create(manifest)
        except ApiError as error:
            if error.status != 409:
                raise
