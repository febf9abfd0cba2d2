"""Access: the address of the API server and the credentials, inside a pod or from a kubeconfig.

In: the ServiceAccount's files and the pod's environment, or a kubeconfig.
Out: an `Access`: address, TLS, headers. Tokens and plug-in credentials are read again while the
process runs (projected tokens last an hour). A pod needs only two files; kubernetes_asyncio, with
its 40 MiB of models, is imported only for kubeconfigs.
Must never: log or show a token.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

__all__ = ["Access", "AccessError", "InCluster", "Kubeconfig", "Plain", "open_access"]

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Seconds after which a token is read again; kubelet renews it at 80 % of its life.
_REFRESH = 60.0


class AccessError(Exception):
    """There is no usable way to an API server; the message says why."""


class Access(Protocol):
    """A way to one API server."""

    host: str  # scheme://host[:port][/prefix], without a slash at the end
    namespace: str  # the pod's, or the one of the kubeconfig's context
    tls: ssl.SSLContext | None  # None: http
    server_name: str | None  # to verify instead of the host's name
    proxy: str | None  # address of an HTTP proxy in between

    async def headers(self, *, fresh: bool = False) -> Mapping[str, str]:
        """Return the headers of authentication; `fresh` reads them anew, after a 401."""
        ...


async def open_access(kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """Find the API server: the file given, else the pod's own, else $KUBECONFIG or ~/.kube/config.

    AccessError when there is none or it cannot be read.
    """
    if kubeconfig is None and context is None and (_ACCOUNT / "token").exists():
        return InCluster()
    file = str(kubeconfig or os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    if not await asyncio.to_thread(_is_there, file):
        raise AccessError(f"kubeconfig {file} not found")
    return await Kubeconfig.load(file, context)


def _is_there(files: str) -> bool:
    return any(Path(one).expanduser().exists() for one in files.split(os.pathsep) if one)


class Plain:
    """An address without authentication, such as `kubectl proxy`'s."""

    def __init__(self, host: str, namespace: str = "default") -> None:
        self.host = host.rstrip("/")
        self.namespace = namespace
        self.tls: ssl.SSLContext | None = None
        self.server_name: str | None = None
        self.proxy: str | None = None

    async def headers(self, *, fresh: bool = False) -> Mapping[str, str]:
        """Return none."""
        return {}


class InCluster:
    """The ServiceAccount of the pod (Kubernetes docs, "Accessing the API from a Pod")."""

    def __init__(self, account: Path = _ACCOUNT, environ: Mapping[str, str] = os.environ) -> None:
        host, port = (
            environ.get("KUBERNETES_SERVICE_HOST"),
            environ.get("KUBERNETES_SERVICE_PORT"),
        )
        if not host or not port:
            raise AccessError(
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set (they are set "
                "in a pod)"
            )
        self.host = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._token_file = account / "token"
        self._token = ""
        self._read_at = 0.0
        try:
            self.tls: ssl.SSLContext | None = ssl.create_default_context(
                cafile=str(account / "ca.crt")
            )
            self.namespace = (account / "namespace").read_text().strip() or "default"
            self._read_token()
        except (OSError, ssl.SSLError) as error:
            raise AccessError(f"the ServiceAccount's files cannot be used: {error}") from None
        self.server_name: str | None = None
        self.proxy = _environment_proxy(self.host)

    async def headers(self, *, fresh: bool = False) -> Mapping[str, str]:
        """Return the token; its file is read again every minute (it is in memory, this blocks nobody)."""
        if fresh or time.monotonic() - self._read_at > _REFRESH:
            try:
                self._read_token()
            except OSError:
                pass  # the old one serves until the file is back
        return {"Authorization": f"Bearer {self._token}"}

    def _read_token(self) -> None:
        token = self._token_file.read_text().strip()
        if not token:
            raise OSError(f"{self._token_file} is empty")
        self._token = token
        self._read_at = time.monotonic()


class Kubeconfig:
    """One context of a kubeconfig: certificates, tokens, basic authentication, plug-ins."""

    def __init__(self, loader: Any, configuration: Any) -> None:
        self._loader = loader
        self._configuration = configuration
        self._read_at = time.monotonic()
        self._lock = asyncio.Lock()
        self.host = str(configuration.host).rstrip("/")
        self.tls = _tls_of(configuration) if self.host.startswith("https:") else None
        self.server_name: str | None = configuration.tls_server_name
        self.proxy = configuration.proxy or _environment_proxy(self.host)
        context = (loader.current_context or {}).get("context", {})
        self.namespace = str(context.get("namespace") or "default")

    @classmethod
    async def load(cls, file: str, context: str | None = None) -> Kubeconfig:
        """Read a kubeconfig (or several, joined by ":"); AccessError when that fails."""
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config import load_kube_config

        configuration = Configuration()
        try:
            loader = await load_kube_config(
                config_file=file,
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
            return cls(loader, configuration)
        except Exception as error:
            # The loader takes files and plug-ins at their word: what is no kubeconfig fails anywhere in it.
            message = str(error) or type(error).__name__
            raise AccessError(f"{file} cannot be used: {message}") from None

    async def headers(self, *, fresh: bool = False) -> Mapping[str, str]:
        """Return the token, if there is one; plug-ins are asked again when theirs has expired."""
        async with self._lock:
            if fresh or time.monotonic() - self._read_at > _REFRESH:
                try:
                    await self._loader.load_and_set(self._configuration)
                except Exception as error:
                    # A plug-in may fail in any way; for the caller there is no way to the server now.
                    raise OSError(f"credentials cannot be renewed: {error}") from None
                self._read_at = time.monotonic()
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        return {"Authorization": token} if token else {}


def _tls_of(configuration: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _environment_proxy(host: str) -> str | None:
    """Return the proxy that the environment names for an address, as client-go honours it."""
    parts = urlsplit(host)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)
