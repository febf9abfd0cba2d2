"""ClusterRef: the name of a cluster before it is built, and what a route may know of it.

In: the target that a backendRef resolved to. Out: a hashable name and its text in the IR.
Must never: hold endpoints; every rollout would then translate routes again.
"""

from __future__ import annotations

from typing import NamedTuple

from edgefast import ir

#: Kinds of clusters, and what they are made of.
KIND_OF_CLUSTER = {"service": "Service", "backend": "Backend", "xbackend": "XBackend"}


class ClusterRef(NamedTuple):
    """Names a cluster; `certificate` is the Gateway's client certificate, "namespace/secret" or ""."""

    kind: str  # "service", "backend" or "xbackend"
    namespace: str
    name: str
    port: int  # 0: all endpoints of a Backend
    certificate: str
    #: "h2": HTTP/2 and nothing else; "": what its TLS agrees on, HTTP/1.1 without, or a stream; "raw": a stream whose TLS is
    #: the client's, although the backend has TLS of its own; "udp": datagrams.
    protocol: str = ""

    @property
    def told(self) -> str:
        """What it is made of, in words: "Service namespace/name"."""
        return f"{KIND_OF_CLUSTER[self.kind]} {self.namespace}/{self.name}"

    @property
    def id(self) -> str:
        """The cluster's name in the IR."""
        port = f"/{self.port}" if self.port else ""
        spoken = f"/{self.protocol}" if self.protocol else ""
        shown = f"@{self.certificate}" if self.certificate else ""
        return f"{self.kind}/{self.namespace}/{self.name}{port}{spoken}{shown}"


class ClusterState(NamedTuple):
    """What routes depend on: their status and their shares of 503 and 500."""

    name: str  # the cluster's in the IR: the one text of it
    available: bool  # it has an endpoint to send to
    broken: str  # why requests must fail, "" when it works
    mismatch: str = ""  # why none of the endpoints that there are, or may be, is used
    session: ir.SessionPersistence | None = None  # what it says itself of its clients
