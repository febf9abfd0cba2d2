"""What a proxy is asked to serve in a row: routes, TLS, logs. The same for every proxy.

In: counts and switches. Out: `Scenario` and its routes in a fixed order. Must never know how one
proxy spells its configuration.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Spread = Literal["hosts", "paths"]
Policy = Literal["", "cidr", "jwt", "extauth", "gzip", "br", "zstd", "hash", "session", "oidc"]
Stream = Literal["", "tcp", "tls", "udp"]
CALL_SERVICE, CALL_METHOD = "bench.Echo", "Unary"
CALL_PATH = f"/{CALL_SERVICE}/{CALL_METHOD}"


@dataclass(frozen=True)
class Route:
    """Requests for `host` under `prefix` go to backend number `backend`."""

    host: str
    prefix: str
    backend: int


@dataclass(frozen=True)
class Scenario:
    """One set-up of all proxies.

    spread "hosts": route i is www-<i>.example.com /get; "paths": www-0.example.com /route-<i>/get.
    own_backends: every route has a backend of its own (same origin address), else all share one.
    logs: access log on, JSON, into a file. connections: client connections that must be possible.
    stream: what the proxy passes on unread; its backend speaks HTTP/1.1 then, over TLS for "tls", or echoes datagrams.
    policy: what holds for requests under /get/kept of route 0, and for none under /get/open. endpoints: of every backend, on addresses of their own.
    http2: clients speak HTTP/2 (prior knowledge); http2_backends: backends do. grpc: the route is a gRPC method's.
    """

    routes: int = 1
    spread: Spread = "hosts"
    tls: bool = False
    logs: bool = False
    own_backends: bool = False
    connections: int = 4096
    http2: bool = False
    http2_backends: bool = False
    grpc: bool = False
    stream: Stream = ""
    policy: Policy = ""
    endpoints: int = 1

    def make_http1(self) -> "Scenario":
        """The same in HTTP/1.1 on both sides: what HTTP/2's rows are read against."""
        return replace(self, http2=False, http2_backends=False, grpc=False)

    def list_routes(self) -> Iterator[Route]:
        """Routes in an order that every proxy can load without sorting (by name)."""
        for index in sorted(range(self.routes), key=str):
            yield self.make_route(index)

    def make_route(self, index: int) -> Route:
        """Route number `index`, 0..routes-1."""
        backend = index if self.own_backends else 0
        if self.grpc:
            return Route(f"www-{index}.example.com", CALL_PATH, backend)
        if self.spread == "hosts":
            return Route(f"www-{index}.example.com", "/get", backend)
        return Route("www-0.example.com", f"/route-{index}/get", backend)

    def list_addresses(self) -> list[str]:
        """Of the endpoints of a backend."""
        if self.endpoints == 1:
            return ["127.0.0.1"]
        return [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(self.endpoints)]

    @property
    def backends(self) -> int:
        """Number of backends named by the routes."""
        return self.routes if self.own_backends else 1

    @property
    def tls_clients(self) -> bool:
        """Clients speak TLS, whoever terminates it."""
        return self.tls or self.stream == "tls"

    @property
    def scheme(self) -> str:
        """http or https."""
        return "https" if self.tls else "http"
