"""HTTP: the IR of HTTP with clients: limits, timeouts, trusted client addresses. edgefast.ir has it under the same names.

In: nothing. Out: structs. Must never: import anything of the product but the IR's base.
"""

from __future__ import annotations

from typing import Literal

from edgefast.ir.telemetry import Struct

__all__ = [
    "ClientAddress",
    "ForwardedHeaders",
    "GrpcSettings",
    "Http2Settings",
    "Http2Upstream",
    "HttpSettings",
]


class Http2Upstream(Struct, frozen=True, gc=False):
    """HTTP/2 with backends (EdgeProxy spec.http2.upstream)."""

    max_concurrent_streams: int = 100  # of a connection; less where the backend says so
    initial_stream_window: int = 64 * 1024
    initial_connection_window: int = 1024 * 1024
    keepalive_ping: int = 0  # ms of silence, with requests open, before a backend is asked whether it is there; 0: never


class Http2Settings(Struct, frozen=True, gc=False):
    """HTTP/2 with clients (EdgeProxy spec.http2)."""

    enabled: bool = True
    max_concurrent_streams: int = 100
    initial_stream_window: int = 64 * 1024
    initial_connection_window: int = 1024 * 1024
    max_requests_per_connection: int = 10_000  # 0: no limit
    keepalive_ping: int = 0  # ms of silence before a client is asked whether it is there; 0: never
    upstream: Http2Upstream = Http2Upstream()


class GrpcSettings(Struct, frozen=True, gc=False):
    """gRPC (EdgeProxy spec.grpc)."""

    web: bool = False  # gRPC-Web becomes gRPC, and its answers gRPC-Web
    retry_codes: tuple[int, ...] = ()  # statuses after which a call is tried again
    retry_attempts: int = 1  # tries after the first
    retry_backoff: int = 25  # ms, least pause; grows by two with jitter, to ten times it at most


class ClientAddress(Struct, frozen=True, gc=False):
    """What x-forwarded-for, x-edge-*, sourceCIDR and logs believe of the client's address."""

    trusted_hops: int = 0
    trusted_cidrs: tuple[str, ...] = ()
    proxy_protocol: Literal["off", "optional", "required"] = "off"
    proxy_senders: tuple[str, ...] = ()  # peers that are trusted to send PROXY protocol headers


class ForwardedHeaders(Struct, frozen=True, gc=False):
    """Request headers that tell backends about the client (EdgeProxy spec.headers)."""

    names: tuple[str, ...] = ()  # lower case, sorted; besides x-forwarded-for and x-forwarded-proto
    client_cert: Literal["", "sanitize", "forward", "append", "set", "always"] = ""  # "": no rule
    client_cert_details: tuple[str, ...] = ()  # of "subject", "uri", "dns", "cert", sorted
    overwrite_for: bool = False  # x-forwarded-for is the client address alone
    request_id: Literal["internal", "preserve", "generate"] = "internal"  # whose x-request-id stays


class HttpSettings(Struct, frozen=True, gc=False):
    """Limits and timeouts of a port (EdgeProxy spec.http and spec.clientAddress). One set per port."""

    request_head: int = 32 * 1024
    request_line: int = 8 * 1024
    header_count: int = 100
    response_head: int = 64 * 1024
    body_size: int = 0  # 0: no limit
    buffer_bytes: int = 32 * 1024
    body_start: int = 16 * 1024  # 0: a backend is asked at once
    body_start_timeout: int = 500
    body_buffer: int = 1024 * 1024  # 0: no body is gathered past body_start
    mirror_buffer: int = 1024 * 1024  # bytes that a copy for a mirror holds at most
    body_share: int = 75  # percent of a cluster's connections
    body_client_share: int = 50  # percent of that share, of a client address while others wait
    body_rate: int = 1024  # bytes a second; 0: no body gives way
    answer_share: int = 75  # percent of what bodies leave of a cluster's connections
    answer_rate: int = 1024  # bytes a second; 0: no answer gives way
    head_timeout: int = 10_000
    idle_timeout: int = 60_000
    stream_idle_timeout: int = 300_000
    route_timeout: int = 15_000
    connect_timeout: int = 2_000
    upstream_idle: int = 20_000
    tls_drain: int = 10_000  # until connections are reset after a change of their port's TLS rule
    max_connections: int = 10_000  # of each port, per worker
    stream_share: int = 75  # percent of a backend's connections that long-lived streams may hold
    max_streams: int = 10_000  # long-lived streams of each port, per worker
    address_streams: int = 0  # long-lived streams of one client address (IPv6: /64); 0: no limit
    max_requests_per_connection: int = 10_000
    escaped_slashes: Literal["UnescapeAndRedirect", "KeepUnchanged", "Reject"] = (
        "UnescapeAndRedirect"
    )
    path_parameters: Literal["keep", "strip", "reject"] = "keep"
    raw_characters: Literal["Allow", "Reject"] = "Allow"
    http10: bool = False  # requests in HTTP/1.0 are served; else 426
    http10_host: str = ""  # Host of those without one; "": 400
    underscores: Literal["Reject", "Allow", "Drop"] = "Reject"
    via: str = ""  # "" sends no Via header
    client_address: ClientAddress = ClientAddress()
    forwarded: ForwardedHeaders = ForwardedHeaders()
    rate_limit_headers: bool = False
    retry_after: bool = False
    http2: Http2Settings = Http2Settings()
    grpc: GrpcSettings = GrpcSettings()
