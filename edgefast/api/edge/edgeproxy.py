"""EdgeProxy: the deployment and the settings of a proxy fleet.

In: `gateway.edge.io/v1alpha1` documents, named by a GatewayClass or by a Gateway. Out: `EdgeProxy`. Every field may be absent: a Gateway's
EdgeProxy wins over the class's field by field, then `edgeproxy_defaults.DEFAULT_SPEC` applies. The CRD therefore has no structural
defaults. Source: spec section 2 (EdgeProxy).
Must never: read the number of CPUs; an absent `workers` means "as many as allowed".
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.edge.edgeproxy_fleet import (
    FleetDeployment,
    FleetHPA,
    FleetPDB,
    FleetService,
    FleetShutdown,
)
from edgefast.api.edge.edgeproxy_headers import ProxyHeaders
from edgefast.api.edge.edgeproxy_protocols import (
    ProxyClientAddress,
    ProxyGRPC,
    ProxyHTTP2,
    ProxyProtocol,
    ProxyStream,
)
from edgefast.api.model.adopted import AdoptedClient
from edgefast.api.model.fields import (
    AS_SET,
    Duration,
    Element,
    HTTPHeaderName,
    Percent,
    Resource,
    Size,
    expects,
)
from edgefast.api.model.meta import ObjectMeta

#: EF_MAX_HEADERS in csrc/limits.h, the size of an array.
MAX_HEADERS = 128


class ProxyHTTP10(Element, frozen=True, kw_only=True):
    """Settings for HTTP/1.0 clients; ClientTrafficPolicy of Envoy Gateway uses the same name."""

    enabled: Annotated[
        bool | None,
        Meta(description="Serves requests in HTTP/1.0. Absent: true."),
    ] = None
    default_host: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=253,
                pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z",
                extra=expects("a host name, such as www.example.com"),
            ),
        ]
        | None,
        Meta(
            description="Host that listeners, routes and backends see for HTTP/1.0 requests without a Host header. "
            "Absent: these requests get 400. A name that no listener or route has, such as _, "
            "selects listeners and routes without a hostname."
        ),
    ] = None


class ProxyHTTP(Element, frozen=True, kw_only=True):
    """Limits and timeouts of HTTP/1.1, with the effect of each limit."""

    request_head: Annotated[
        Size | None,
        Meta(description="Largest request head (request line and headers); 431 past it."),
    ] = None
    request_line: Annotated[Size | None, Meta(description="Longest request line; 414 past it.")] = (
        None
    )
    header_count: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_HEADERS)] | None,
        Meta(description="Most header lines of a request or response; 431 or 502 past it."),
    ] = None
    response_head: Annotated[
        Size | None,
        Meta(description="Largest response head from a backend; 502 past it."),
    ] = None
    body_size: Annotated[
        Size | None,
        Meta(
            description="Largest request body, also if a policy allows more; 413 above it. Absent: no "
            "limit."
        ),
    ] = None
    buffer_bytes: Annotated[
        Size | None,
        Meta(
            description="Bytes buffered in each direction before edgefast stops reading from the other "
            "side."
        ),
    ] = None
    body_start: Annotated[
        Size | None,
        Meta(
            description="Bytes of a request body (or the whole body) that must arrive before edgefast "
            "connects to a backend with many connections in use for bodies; at most 64KiB."
        ),
    ] = None
    body_start_timeout: Annotated[
        Duration | None,
        Meta(
            description="Time after which edgefast forwards a slower body as it arrives, if "
            "connections are free."
        ),
    ] = None
    body_buffer: Annotated[
        Size | None,
        Meta(
            description="Largest request body that edgefast buffers completely while all connections "
            "for bodies are in use."
        ),
    ] = None
    mirror_buffer: Annotated[
        Size | None,
        Meta(
            description="Bytes of a request body that edgefast buffers for a mirror while the mirror "
            "connects or does not read; a copy that needs more is dropped. At most 16MiB."
        ),
    ] = None
    body_share: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(
            description="Percent of a backend's connections that incomplete request bodies can use."
        ),
    ] = None
    body_client_share: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(
            description="Percent of this share that one client address (IPv6: one /64) keeps when "
            "other clients wait."
        ),
    ] = None
    body_rate: Annotated[
        Size | None,
        Meta(
            description="Bytes a second. When others wait for the share, edgefast ends a slower body "
            "with 408."
        ),
    ] = None
    answer_share: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(
            description="Percent of a backend's remaining connections that answers to slow readers "
            "keep when requests wait for a connection."
        ),
    ] = None
    answer_rate: Annotated[
        Size | None,
        Meta(
            description="Bytes a second. When requests wait for the connection, edgefast cuts an "
            "answer that its client reads more slowly. 0: never."
        ),
    ] = None
    head_timeout: Annotated[
        Duration | None,
        Meta(description="Time to receive a request head from its first byte; 408 past it."),
    ] = None
    idle_timeout: Annotated[
        Duration | None,
        Meta(description="Longest time between two requests of a client connection."),
    ] = None
    stream_idle_timeout: Annotated[
        Duration | None,
        Meta(
            description="Longest time without data in either direction during a request; 504 or close "
            "after it."
        ),
    ] = None
    connect_timeout: Annotated[
        Duration | None,
        Meta(description="Time limit to connect to an endpoint, within the route's timeout."),
    ] = None
    upstream_idle: Annotated[
        Duration | None,
        Meta(description="Time after which an unused connection to a backend is closed."),
    ] = None
    tls_drain_timeout: Annotated[
        Duration | None,
        Meta(
            description="Time that open requests, streams and WebSockets keep after the client CA, client verification or lowest TLS "
            "version of their port changes. edgefast then resets their connections."
        ),
    ] = None
    max_connections: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)] | None,
        Meta(
            description="Client connections of each port, per worker. When all are in use, edgefast closes "
            "an idle connection of the client address (IPv6: one /64) with most connections for an "
            "address with fewer; otherwise it refuses and counts the new connection."
        ),
    ] = None
    stream_share: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(
            description="Percent of a backend's connections that long-lived streams (upgraded "
            "connections, answers of more than a second) may hold. Above it, edgefast ends a stream of the "
            "client address with most streams for an address with fewer; other upgrades get 503."
        ),
    ] = None
    max_streams: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)] | None,
        Meta(
            description="Long-lived streams of each port, per worker; above it edgefast acts as for streamShare."
        ),
    ] = None
    address_streams: Annotated[
        Annotated[int, Meta(ge=0, le=1000000)] | None,
        Meta(
            description="Long-lived streams that one client address (IPv6: one /64) may have on a "
            "port, per worker; further upgrades get 503. 0: no limit."
        ),
    ] = None
    max_requests_per_connection: Annotated[
        Annotated[int, Meta(ge=1, le=2147483647)] | None,
        Meta(description="Requests on one client connection; after them it is closed."),
    ] = None
    escaped_slashes: Annotated[
        Literal["UnescapeAndRedirect", "KeepUnchanged", "Reject"] | None,
        Meta(
            description="How a path with %2F or %5C is handled: a 307 to the unescaped path, "
            "unchanged, or 400."
        ),
    ] = None
    path_parameters: Annotated[
        Literal["keep", "strip", "reject"] | None,
        Meta(
            description="How path parameters (/admin;x) are handled: keep forwards them, but answers 400 if "
            "another rule matches the path without them; strip removes them before matching and "
            "forwarding; reject answers 400."
        ),
    ] = None
    raw_characters: Annotated[
        Literal["Allow", "Reject"] | None,
        Meta(
            description='How a raw | { } ^ \\ " or backtick in the query, or | in the path, is handled: '
            "Allow forwards the query unchanged and the path with %7C, Reject answers 400."
        ),
    ] = None
    http10: Annotated[
        ProxyHTTP10 | None,
        Meta(description="Settings for HTTP/1.0 clients. Absent: their requests get 426."),
    ] = None
    underscores: Annotated[
        Literal["RejectRequest", "DropHeader", "Allow"] | None,
        Meta(
            description="How a header name with an underscore is handled: 400 for the request, header "
            "removed, or unchanged."
        ),
    ] = None
    via: Annotated[
        HTTPHeaderName | None,
        Meta(description="Pseudonym to add in a Via header (RFC 9110 7.6.3). Absent: no Via."),
    ] = None


#: Fields of an access log line that the product chooses (docs/guides/access-log.md).
LogField = Literal[
    "time", "client", "peer", "method", "host", "path", "status", "flags", "route", "rule",
    "limit", "limit_window", "limit_remaining", "backend", "endpoint", "request_id",
    "bytes_received", "bytes_sent", "duration_ms", "upstream_ms", "tries", "user_agent", "trace_id",
    "reason", "grpc_status", "policy", "policy_rule", "user",
    "upstream_tls_failure",
]  # fmt: skip


class ProxyLogFilter(Element, frozen=True, kw_only=True):
    """Selects the requests that are logged: those that reach one of the limits."""

    min_status: Annotated[
        Annotated[int, Meta(ge=100, le=599)] | None,
        Meta(description="Logs requests with this status or a higher one."),
    ] = None
    min_duration: Annotated[
        Duration | None, Meta(description="Logs requests that took this long or longer.")
    ] = None


class ProxyAccessLog(Element, frozen=True, kw_only=True):
    """One line per request on standard output."""

    format: Annotated[
        Literal["json", "text"] | None,
        Meta(description="Format of a line. Absent: text if a template is set, otherwise json."),
    ] = None
    fields: Annotated[
        Annotated[tuple[LogField, ...], Meta(min_length=1, max_length=64, extra=AS_SET)] | None,
        Meta(description="Fields of a json line, in order. Absent: all."),
    ] = None
    json: Annotated[
        Annotated[
            dict[str, Annotated[str, Meta(max_length=1024)]], Meta(min_length=1, max_length=64)
        ]
        | None,
        Meta(
            description="Members of a JSON line, with a template for each, "
            'such as "%RESPONSE_CODE%".'
        ),
    ] = None
    template: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096)] | None,
        Meta(
            description="Template of a text line. Operators such as %REQ(:METHOD)% are replaced by "
            "their values; %% is a percent sign."
        ),
    ] = None
    filter: Annotated[
        ProxyLogFilter | None,
        Meta(description="Selects the requests that are logged. Absent: all."),
    ] = None
    sampling: Annotated[
        Percent | None,
        Meta(description="Percentage of the selected requests that are logged."),
    ] = None
    off: Annotated[
        bool | None,
        Meta(
            description="Disables the access log. Quote the name "
            '("off": true) for YAML 1.1 tools, which read a bare off as a boolean.'
        ),
    ] = None


class ProxyRateLimit(Element, frozen=True, kw_only=True):
    """Response headers on requests that a rate limit applies to."""

    headers: Annotated[
        bool | None,
        Meta(description="Adds ratelimit-limit, ratelimit-remaining and ratelimit-reset."),
    ] = None
    retry_after: Annotated[bool | None, Meta(description="Adds retry-after to 429 answers.")] = None


class ProxyTracing(Element, frozen=True, kw_only=True):
    """Spans for requests."""

    endpoint: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=2048,
                pattern=r"^https?://([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
                r"(:[1-9][0-9]{0,4})?/?\Z",
                extra=expects("a collector's address, such as http://collector:4318"),
            ),
        ],
        Meta(description="OTLP collector, as http://host:port or https://host:port."),
    ]
    protocol: Annotated[
        Literal["grpc", "http"] | None,
        Meta(description="OTLP over gRPC or HTTP. Absent: grpc with port 4317, otherwise http."),
    ] = None
    sampling: Annotated[
        Percent | None,
        Meta(
            description="Percentage of connections, and of requests without a sampling decision in "
            "traceparent, that are traced. Absent: 100."
        ),
    ] = None
    attributes: Annotated[
        Annotated[dict[str, str], Meta(max_length=32)] | None,
        Meta(
            description="Attributes added to every span; service.name is the name of the service."
        ),
    ] = None
    exemplars: Annotated[
        bool | None,
        Meta(
            description="Adds the newest trace of each bucket to the duration histogram, for scrapers "
            "with OpenMetrics. Absent: false."
        ),
    ] = None
    connections: Annotated[
        bool | None,
        Meta(
            description="Exports a span for each ended connection of TCP and TLS listeners. Absent: "
            "false."
        ),
    ] = None


class EdgeProxySpec(Element, frozen=True, kw_only=True):
    """`spec` of an EdgeProxy."""

    merge_gateways: Annotated[
        bool | None,
        Meta(
            description="All Gateways of the class share one fleet, one Service and one address. Port, "
            "protocol and hostname must be unique among all their listeners. In Gateway "
            "Namespace mode each namespace has its own fleet and address, and they must be "
            "unique in the namespace. Only the EdgeProxy of a GatewayClass can set it."
        ),
    ] = None
    workers: Annotated[
        Annotated[int, Meta(ge=1, le=1024)] | None,
        Meta(description="Worker processes per proxy. Absent: the number of available CPUs."),
    ] = None
    deployment: Annotated[
        FleetDeployment | None, Meta(description="The workload that runs the proxies.")
    ] = None
    service: Annotated[
        FleetService | None, Meta(description="The Service in front of the proxies.")
    ] = None
    hpa: Annotated[FleetHPA | None, Meta(description="Autoscaling. Absent: off.")] = None
    pdb: Annotated[FleetPDB | None, Meta(description="Disruption budget. Absent: off.")] = None
    shutdown: Annotated[FleetShutdown | None, Meta(description="Settings of the drain.")] = None
    http: Annotated[ProxyHTTP | None, Meta(description="Limits and timeouts of HTTP/1.1.")] = None
    http2: Annotated[
        ProxyHTTP2 | None,
        Meta(
            description="HTTP/2 with clients and backends. Limits of request and response heads are "
            "those of `http`."
        ),
    ] = None
    stream: Annotated[ProxyStream | None, Meta(description="Limits of TLS, TCP and UDP.")] = None
    proxy_protocol: Annotated[
        ProxyProtocol | None,
        Meta(description="PROXY protocol version sent to backends of TLS and TCP listeners."),
    ] = None
    grpc: Annotated[ProxyGRPC | None, Meta(description="gRPC: retries and gRPC-Web.")] = None
    client_address: Annotated[
        ProxyClientAddress | None,
        Meta(description="Sources of the client address."),
    ] = None
    headers: Annotated[
        ProxyHeaders | None,
        Meta(description="Request headers that tell backends about the client."),
    ] = None
    access_log: Annotated[
        ProxyAccessLog | None,
        Meta(description="One line per request on standard output."),
    ] = None
    rate_limit: Annotated[
        ProxyRateLimit | None,
        Meta(description="Response headers on requests that a rate limit applies to."),
    ] = None
    tracing: Annotated[ProxyTracing | None, Meta(description="Tracing. Absent: off.")] = None


class EdgeProxy(Resource, frozen=True, kw_only=True):
    """Settings of a proxy fleet, attached by a GatewayClass or a Gateway."""

    metadata: ObjectMeta
    spec: EdgeProxySpec = EdgeProxySpec()
    #: Written by the decoder of a ClientTrafficPolicy of another project (`--adopt`).
    adopted: AdoptedClient | None = None
