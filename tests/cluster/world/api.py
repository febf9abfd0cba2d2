"""A small blocking client of the Kubernetes API for tests: JSON in, JSON out, waiting with a deadline.

In: a `Server` (URL, CA) and a certificate or token. Out: decoded objects; `ApiError` for every answer of 400 and more.
Thread-safe: each thread has its own connection. Paths are the API's own, e.g. "/api/v1/namespaces/x/pods/y"; `path_of`
makes one from a manifest through discovery.
Must never: hide a failure by repeating a request that may have had an effect.
"""

from __future__ import annotations

import http.client
import json
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import yaml

from cluster.world import netns

Manifest = Mapping[str, Any]

#: Content types of PATCH by short name.
PATCHES = {
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class ApiError(Exception):
    """An answer of 400 or more; `reason` and `message` are those of the Status object, if it is one."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


@dataclass(frozen=True)
class Server:
    """Where an API server is and how it is known; `in_netns` is the namespace connections are made in."""

    host: str
    port: int
    ca: Path
    in_netns: str | None = None

    @property
    def url(self) -> str:
        """The URL as in kubeconfigs."""
        return f"https://{self.host}:{self.port}"


class Api:
    """One user's view of an API server."""

    def __init__(
        self, server: Server, *, certificate: Path | None = None, token: str | None = None
    ) -> None:
        self._open: list[http.client.HTTPSConnection] = []
        self.server = server
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(server.ca))
        if certificate is not None:
            self._tls.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._mine = threading.local()
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def close(self) -> None:
        """Close the connections of all threads; the next request opens a new one."""
        while self._open:
            self._open.pop().close()
        self._mine = threading.local()

    def __del__(self) -> None:
        self.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
        decode: bool = True,
    ) -> Any:
        """Send one request; the decoded JSON, or the text when the answer is none."""
        headers = {"Accept": "application/json"}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = content_type
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        target = f"{path}?{urlencode(query)}" if query else path
        answer, raw = self._exchange(method, target, data, headers)
        if answer.status >= 400:
            raise _error(answer.status, raw)
        return (
            json.loads(raw) if decode and raw[:1] in (b"{", b"[") else raw.decode(errors="replace")
        )

    def get(self, path: str, **query: str) -> Any:
        """Return one object, list or text."""
        return self.request("GET", path, query=query)

    def text(self, path: str, **query: str) -> str:
        """Return an answer as it came, e.g. a log."""
        return str(self.request("GET", path, query=query, decode=False))

    def find(self, path: str) -> Any | None:
        """Return one object, None when there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return the objects of a list."""
        return list(self.get(path, **query).get("items") or [])

    def post(self, path: str, body: Any) -> Any:
        """POST a body."""
        return self.request("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        """PUT a body."""
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge") -> Any:
        """PATCH an object; `kind` is one of PATCHES."""
        return self.request("PATCH", path, body, content_type=PATCHES[kind])

    def delete(self, path: str, **options: Any) -> None:
        """Delete an object (DeleteOptions fields as keywords); nothing happens when it is gone already."""
        try:
            self.request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})
        except ApiError as error:
            if error.status != 404:
                raise

    def create(self, manifest: Manifest) -> Any:
        """Create the object of a manifest."""
        return self.post(self.path_of(manifest, collection=True), manifest)

    def apply(self, *manifests: Manifest | str | Path, manager: str = "test") -> list[Any]:
        """Server-side apply manifests, YAML text or YAML files, in the order given, ownership forced."""
        query = {"fieldManager": manager, "force": "true"}
        return [
            self.request(
                "PATCH",
                self.path_of(manifest),
                json.dumps(manifest).encode(),
                content_type=PATCHES["apply"],
                query=query,
            )
            for manifest in read_manifests(manifests)
        ]

    def remove(self, *manifests: Manifest | str | Path) -> None:
        """Delete the objects of manifests, the last one first."""
        for manifest in reversed(list(read_manifests(manifests))):
            self.delete(self.path_of(manifest))

    def path_of(self, manifest: Manifest, *, collection: bool = False) -> str:
        """Return the path of a manifest's object, or of the collection it belongs to."""
        version, kind = str(manifest["apiVersion"]), str(manifest["kind"])
        plural, namespaced = self._kind(version, kind)
        meta = manifest["metadata"]
        path = _root(version)
        if namespaced:
            path += f"/namespaces/{meta.get('namespace', 'default')}"
        return f"{path}/{plural}" if collection else f"{path}/{plural}/{quote(meta['name'])}"

    def wait(
        self, path: str, until: Callable[[Any], Any], seconds: float = 60.0, *, every: float = 0.05
    ) -> Any:
        """Poll an object until the condition holds for it (it gets None while there is none); return the object."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.find(path)
            if until(found):
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} not as expected after {seconds} s: {json.dumps(found)}")
            time.sleep(every)

    def wait_gone(self, path: str, seconds: float = 60.0) -> None:
        """Wait until an object is gone."""
        self.wait(path, lambda found: found is None, seconds)

    def watch(self, path: str, seconds: int = 60, **query: str) -> Iterator[tuple[str, Any]]:
        """Yield the (type, object) events of one watch, until it ends."""
        query = {"watch": "1", "timeoutSeconds": str(seconds), **query}
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = self._connect(seconds + 10)
        try:
            connection.request("GET", f"{path}?{urlencode(query)}", headers=headers)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _error(answer.status, answer.read())
            for line in answer:
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()

    def _kind(self, version: str, kind: str) -> tuple[str, bool]:
        known = self._kinds.get(version, {})
        if kind not in known:
            resources = self.get(_root(version))["resources"]
            known = {
                r["kind"]: (r["name"], r["namespaced"]) for r in resources if "/" not in r["name"]
            }
            self._kinds[version] = known
        return known[kind]

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        for again in (True, False):
            connection: http.client.HTTPSConnection | None = getattr(self._mine, "connection", None)
            if connection is not None and _is_ended(connection):
                self._forget(connection)
                connection = None
            fresh = connection is None
            if connection is None:
                connection = self._mine.connection = self._connect(30.0)
                self._open.append(connection)
            try:
                connection.request(method, target, data, headers)
                answer = connection.getresponse()
                return answer, answer.read()
            except (http.client.HTTPException, OSError) as error:
                self._forget(connection)
                # A kept connection may have been closed before the request arrived; any other failure is the caller's.
                # A POST may have arrived all the same: it is sent again only when it could not be sent (of the two
                # errors, the second is TLS's; reading says RemoteDisconnected where writing says that).
                gone: tuple[type[Exception], ...] = (BrokenPipeError, ssl.SSLEOFError)
                if method != "POST":
                    gone += (http.client.RemoteDisconnected, ConnectionResetError)
                if fresh or not again or not isinstance(error, gone):
                    raise
        raise AssertionError("unreachable")

    def _forget(self, connection: http.client.HTTPSConnection) -> None:
        connection.close()
        self._mine.connection = None
        if connection in self._open:
            self._open.remove(connection)

    def _connect(self, seconds: float) -> http.client.HTTPSConnection:
        server = self.server
        connection = http.client.HTTPSConnection(server.host, server.port, timeout=seconds)
        raw = netns.connect(server.in_netns, server.host, server.port, seconds)
        try:
            connection.sock = self._tls.wrap_socket(raw, server_hostname=server.host)
        except BaseException:
            raw.close()
            raise
        return connection


def _is_ended(connection: http.client.HTTPSConnection) -> bool:
    """Tell whether the server has ended a kept connection (kube-apiserver: after 90 s of silence).

    Between two answers it has nothing else to say.
    """
    if connection.sock is None:  # the answer said so
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def read_manifests(sources: Iterable[Manifest | str | Path]) -> Iterator[Manifest]:
    """Yield the manifests of manifests, YAML texts and YAML files; lists are taken apart."""
    for source in sources:
        if isinstance(source, Mapping):
            documents: Iterable[Any] = [source]
        else:
            text = source.read_text() if isinstance(source, Path) else source
            documents = yaml.load_all(text, yaml.CSafeLoader)
        for document in documents:
            if document:
                yield from document["items"] if document.get("kind") == "List" else [document]


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _error(status: int, raw: bytes) -> ApiError:
    try:
        body = json.loads(raw)
        return ApiError(status, str(body.get("reason", "")), str(body.get("message", "")))
    except (ValueError, AttributeError):
        return ApiError(status, "", raw.decode(errors="replace")[:500])
