"""EdgeProxy protocols: `spec.http2`: HTTP/2 with clients and with backends.

In: documents of EdgeProxy. Out: `ProxyHTTP2`. Source: docs/reference/http2.md.
Must never: carry a default; `edgeproxy_defaults.py` has them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.model.fields import AS_SET, CIDR, Duration, Element, Size


class ProxyHTTP2Upstream(Element, frozen=True, kw_only=True):
    """HTTP/2 with backends (docs/reference/http2.md)."""

    max_concurrent_streams: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(
            description="Concurrent requests on one connection to a backend, if the backend allows "
            "them. At 80 percent edgefast opens another connection."
        ),
    ] = None
    initial_stream_window_size: Annotated[
        Size | None,
        Meta(description="Flow-control window of an answer in bytes, 16KiB to 2MiB."),
    ] = None
    initial_connection_window_size: Annotated[
        Size | None,
        Meta(
            description="Flow-control window of all answers of a connection in bytes, 64KiB to 64MiB."
        ),
    ] = None
    keepalive_ping: Annotated[
        Duration | None,
        Meta(
            description="Time without data from a backend with open requests after which edgefast "
            "sends a PING, at least 1s. 0s: never."
        ),
    ] = None


class ProxyHTTP2(Element, frozen=True, kw_only=True):
    """HTTP/2 with clients, and with backends (docs/reference/http2.md)."""

    enabled: Annotated[
        bool | None,
        Meta(
            description="Enables HTTP/2 with clients: on HTTPS listeners by ALPN, on HTTP listeners "
            "with prior knowledge."
        ),
    ] = None
    max_concurrent_streams: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="Concurrent requests of a client on one connection."),
    ] = None
    initial_stream_window_size: Annotated[
        Size | None,
        Meta(description="Flow-control window of a request body in bytes, 16KiB to 2MiB."),
    ] = None
    initial_connection_window_size: Annotated[
        Size | None,
        Meta(
            description="Flow-control window of all requests of a connection in bytes, 64KiB to 64MiB."
        ),
    ] = None
    max_requests_per_connection: Annotated[
        Annotated[int, Meta(ge=1, le=2147483647)] | None,
        Meta(description="Requests on one connection; after them edgefast sends GOAWAY."),
    ] = None
    keepalive_ping: Annotated[
        Duration | None,
        Meta(
            description="Time without data from a client after which edgefast sends a PING. 0s: never."
        ),
    ] = None
    upstream: Annotated[
        ProxyHTTP2Upstream | None,
        Meta(description="HTTP/2 with backends. Open connections keep their settings."),
    ] = None


# --- the `clientAddress` part of EdgeProxy: which peers may set a client's address ---


class ProxyClientAddress(Element, frozen=True, kw_only=True):
    """Trusted sources of the client address, for x-forwarded-for, x-edge-internal, sourceCIDR and the access log."""

    trusted_hops: Annotated[
        Annotated[int, Meta(ge=0, le=255)] | None,
        Meta(description="Entries of x-forwarded-for, from the right, that trusted proxies added."),
    ] = None
    trusted_cidrs: Annotated[
        Annotated[tuple[CIDR, ...], Meta(max_length=256, extra=AS_SET)] | None,
        Meta(
            description="Peers that are trusted to set x-forwarded-for and x-forwarded-proto. edgefast forwards "
            "their Forwarded, X-Real-IP, X-Forwarded-Host and similar headers."
        ),
    ] = field(default=None, name="trustedCIDRs")
    proxy_protocol: Annotated[
        Literal["off", "optional", "required"] | None,
        Meta(
            description="Whether connections begin with a PROXY protocol header (v1 or v2); on HTTPS "
            "before the TLS handshake."
        ),
    ] = None
    proxy_protocol_cidrs: Annotated[
        Annotated[tuple[CIDR, ...], Meta(max_length=256, extra=AS_SET)] | None,
        Meta(
            description="Peers that are trusted to send a PROXY protocol header. Absent: `trustedCIDRs`. edgefast closes a connection of another "
            "peer if it sends a header, or if `proxyProtocol` is `required`."
        ),
    ] = field(default=None, name="proxyProtocolCIDRs")


# --- edgeProxy `spec.grpc` ---


#: Statuses that say that a call went wrong (github.com/grpc/grpc doc/statuscodes.md).
GRPCCode = Literal[
    "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
]  # fmt: skip
MAX_GRPC_ATTEMPTS = 16


class ProxyGRPCRetry(Element, frozen=True, kw_only=True):
    """Retries of gRPC calls."""

    codes: Annotated[
        Annotated[tuple[GRPCCode, ...], Meta(min_length=1, max_length=16, extra=AS_SET)] | None,
        Meta(
            description="gRPC statuses after which edgefast retries a call, if no part of an answer "
            "has arrived. Absent: none."
        ),
    ] = None
    attempts: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_GRPC_ATTEMPTS)] | None,
        Meta(description="Most retries of a call. 0: no retries."),
    ] = None
    backoff: Annotated[
        Duration | None,
        Meta(
            description="Shortest pause before a retry. It doubles with jitter, up to ten times this "
            "value."
        ),
    ] = None


class ProxyGRPC(Element, frozen=True, kw_only=True):
    """gRPC (docs/guides/grpc.md)."""

    web: Annotated[
        bool | None,
        Meta(
            description="Translates gRPC-Web (application/grpc-web and application/grpc-web-text) "
            "of browsers to gRPC and back. false: it is forwarded unchanged."
        ),
    ] = None
    retry: Annotated[
        ProxyGRPCRetry | None, Meta(description="Retries of calls by their status.")
    ] = None


# --- stream settings of EdgeProxy ---


#: Versions of the PROXY protocol that are written to backends.
ProxyProtocol = Literal["v1", "v2"]


class ProxyStream(Element, frozen=True, kw_only=True):
    """Limits and timeouts of TLS, TCP and UDP listeners, per worker."""

    connect_timeout: Annotated[
        Duration | None,
        Meta(description="Time limit to connect to a backend, for all attempts together."),
    ] = None
    idle_timeout: Annotated[
        Duration | None,
        Meta(description="Longest time without data in either direction. 0s: no limit."),
    ] = None
    hello_timeout: Annotated[
        Duration | None,
        Meta(description="Time limit for a complete TLS ClientHello."),
    ] = None
    session_timeout: Annotated[
        Duration | None,
        Meta(description="Time without datagrams after which a UDP session ends."),
    ] = None
    max_connections: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)] | None,
        Meta(
            description="Connections of a listener. When all are in use, edgefast closes the connection that has been "
            "idle for longest, of the client address (IPv6: one /64) with most connections, for an address "
            "with fewer; otherwise it refuses and counts the new connection."
        ),
    ] = None
    max_sessions: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)] | None,
        Meta(
            description="Most UDP sessions, by client address and port. Above it, edgefast ends "
            "sessions of clients that sent nothing after an answer."
        ),
    ] = None
    address_connections: Annotated[
        Annotated[int, Meta(ge=0, le=1000000)] | None,
        Meta(
            description="Most open connections of one client address (IPv6: one /64). 0: no limit."
        ),
    ] = None
    address_rate: Annotated[
        Annotated[int, Meta(ge=0, le=1000000)] | None,
        Meta(
            description="New connections a second of one client address, with a burst of the same "
            "number. 0: no limit."
        ),
    ] = None
