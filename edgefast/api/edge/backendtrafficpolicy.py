"""BackendTrafficPolicy: traffic settings of requests and backends: body size, timeouts, faults, endpoints.

In: `gateway.edge.io/v1alpha1` documents. Out: `BackendTrafficPolicy`. Its fields have the names
that Envoy Gateway gives them.
Source: GEP-713 (attachment). `model/unsupported_fields.py` lists what Envoy Gateway has and this
release lacks.
Must never: fill in a field that is not set; each leaf is merged on its own.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.edge.circuit_breaker import CircuitBreaker
from edgefast.api.edge.health_check import HealthCheck
from edgefast.api.edge.load_balancer import LoadBalancer
from edgefast.api.edge.policy_target import MergeType, Newer, PolicyTarget, TargetReferences
from edgefast.api.edge.response_override import ResponseOverride
from edgefast.api.model.adopted import AdoptedPolicy
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import Duration, Element, Resource, Size, expects
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.session_persistence import SessionCookie, SessionPersistence


class TrafficCookie(SessionCookie, frozen=True, kw_only=True):
    """The cookie of a session, with its attributes."""

    domain: Annotated[
        Annotated[
            str,
            Meta(
                max_length=253,
                pattern=r"^\.?[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?\Z",
                extra=expects("a domain such as example.com"),
            ),
        ]
        | None,
        Meta(description="Its Domain. Absent: the host of the request alone."),
    ] = None
    same_site: Annotated[
        Literal["Strict", "Lax", "None", "NoneIfSupported", "Unset"],
        Meta(
            description="Its SameSite. NoneIfSupported: None, and no attribute for browsers of 2019 and before that reject None "
            "(by User-Agent). Unset: no attribute."
        ),
    ] = "Strict"
    secure: Annotated[
        Literal["Auto", "Always"],
        Meta(description="Auto: Secure for requests over TLS. Always: Secure for all requests."),
    ] = "Auto"


class TrafficSession(SessionPersistence, frozen=True, kw_only=True):
    """Keeps a client at the endpoint that served its first request."""

    idle_timeout: Annotated[
        Duration | None,
        Meta(
            description="Longest idle time of a session; each answer renews it. Absent: no limit."
        ),
    ] = None
    cookie: Annotated[
        TrafficCookie | None, Meta(description="Settings of the cookie. Only with type Cookie.")
    ] = None
    change_on_failure: Annotated[
        bool,
        Meta(
            description="true: if the endpoint of a session fails, the session moves to the endpoint that serves the request. "
            "false: the session stays while its endpoint exists."
        ),
    ] = True
    precedence: Annotated[
        Literal["Weights", "Session"],
        Meta(
            description="Weights: the weights of backendRefs choose the backend of each request. Session: a session keeps its "
            "backend while that has weight; weights choose for clients without a session."
        ),
    ] = "Weights"


Share = Annotated[
    float, Meta(ge=0, le=100, description="Percentage of the requests, in steps of 0.0001.")
]


class FaultDelay(Element, frozen=True, kw_only=True):
    """A delay before a request continues."""

    fixed_delay: Annotated[
        Duration,
        Meta(
            description="Length of the delay, more than 0s and at most 60s. It counts towards the "
            "request's timeout."
        ),
    ]
    percentage: Share = 100


class FaultAbort(Element, frozen=True, kw_only=True):
    """An answer instead of a request to the backend."""

    http_status: Annotated[
        Annotated[int, Meta(ge=200, le=599)] | None,
        Meta(
            description="HTTP status of the answer; gRPC calls get the matching gRPC status. Set this "
            "or `grpcStatus`."
        ),
    ] = None
    grpc_status: Annotated[
        Annotated[int, Meta(ge=0, le=16)] | None,
        Meta(description="gRPC status of the answer. Requests other than gRPC calls pass."),
    ] = None
    percentage: Share = 100


class FaultInjection(Element, frozen=True, kw_only=True):
    """Delays or aborts allowed requests."""

    delay: Annotated[FaultDelay | None, Meta(description="A wait.")] = None
    abort: Annotated[
        FaultAbort | None,
        Meta(description="An answer instead of a request to the backend, after the delay."),
    ] = None


class Encoder(Element, frozen=True, kw_only=True):
    """Settings of an encoding. It has none; the level is always 1."""


class Compressor(Element, frozen=True, kw_only=True):
    """An encoding for answers."""

    type: Annotated[
        Literal["Gzip", "Brotli", "Zstd"],
        Meta(description="Encoding: gzip, br or zstd at level 1."),
    ]
    min_content_length: Annotated[
        Size | None,
        Meta(
            description="Smallest answer in bytes that is encoded, if its length is known: 30 to 1Gi. "
            "Absent: 1024."
        ),
    ] = None
    gzip: Annotated[Encoder | None, Meta(description="No settings.")] = None
    brotli: Annotated[Encoder | None, Meta(description="No settings.")] = None
    zstd: Annotated[Encoder | None, Meta(description="No settings.")] = None


class BandwidthRate(Element, frozen=True, kw_only=True):
    """Bytes per time."""

    value: Annotated[Size, Meta(description="Bytes in one unit, 1 to 1Ti.")]
    unit: Annotated[Literal["Second", "Minute", "Hour"], Meta(description="The unit of time.")]


class ResponseBandwidth(Element, frozen=True, kw_only=True):
    """A bandwidth limit of responses."""

    limit: Annotated[
        BandwidthRate,
        Meta(
            description="Rate of a response body, counted as the backend sends it. edgefast can send the bytes of one second at once."
        ),
    ]
    scope: Annotated[
        Literal["Response"],
        Meta(
            description="Response: each response has its own limit. Responses never share a limit."
        ),
    ]
    unlimited_bytes: Annotated[
        Size | None,
        Meta(
            description="Number of first bytes of a response that have no limit, at most 1Ti. Absent: 0."
        ),
    ] = None


class BandwidthLimit(Element, frozen=True, kw_only=True):
    """Bandwidth limits."""

    response: Annotated[
        ResponseBandwidth, Meta(description="Limit of response bodies. WebSockets have no limit.")
    ]


class RequestBuffer(Element, frozen=True, kw_only=True):
    """The largest body of a request."""

    limit: Annotated[
        Size,
        Meta(
            description="Largest request body in bytes; a larger one gets 413. EdgeProxy "
            "`http.bodySize` is the upper limit. Bodies are counted while they pass and "
            "are not buffered, so a backend can receive the beginning of a body that is "
            "too large."
        ),
    ]


class HTTPTrafficTimeout(Element, frozen=True, kw_only=True):
    """Timeouts of requests; 0s means no limit."""

    request_timeout: Annotated[
        Duration | None,
        Meta(
            description="Time limit for the whole answer; 504 after it. `timeouts.request` of a "
            "route's rule takes precedence."
        ),
    ] = None
    stream_idle_timeout: Annotated[
        Duration | None, Meta(description="Time without data in either direction.")
    ] = None
    send_timeout: Annotated[
        Duration | None,
        Meta(description="Time in which the backend does not read data that waits for it."),
    ] = None
    retry_timeout: Annotated[
        Duration | None,
        Meta(
            description="Time since the first attempt in which another attempt may begin. Afterwards a failure is answered."
        ),
    ] = None


class TCPTrafficTimeout(Element, frozen=True, kw_only=True):
    """Timeouts of connections; 0s means no limit."""

    connect_timeout: Annotated[
        Duration | None,
        Meta(
            description="Time limit for a connection to an endpoint, TLS handshake included. Absent: EdgeProxy "
            "`http.connectTimeout`."
        ),
    ] = None


class TrafficTimeout(Element, frozen=True, kw_only=True):
    """Timeouts, by protocol."""

    tcp: Annotated[
        TCPTrafficTimeout | None, Meta(description="Timeouts of connections to endpoints.")
    ] = None

    http: Annotated[HTTPTrafficTimeout | None, Meta(description="Timeouts of HTTP and gRPC.")] = (
        None
    )


class BackendTrafficPolicySpec(Element, frozen=True, kw_only=True):
    """`spec` of a BackendTrafficPolicy."""

    target_refs: TargetReferences
    merge_type: MergeType = "Inherit"
    request_buffer: Annotated[
        RequestBuffer | None, Meta(description="Size limit of request bodies.")
    ] = None
    timeout: Annotated[TrafficTimeout | None, Meta(description="Timeouts.")] = None
    circuit_breaker: Annotated[
        CircuitBreaker | None, Meta(description="Limits of connections and requests to a backend.")
    ] = None
    health_check: Annotated[HealthCheck | None, Meta(description="Ejects endpoints that fail.")] = (
        None
    )
    fault_injection: Annotated[
        FaultInjection | None,
        Meta(description="Injects faults, to test how clients handle them."),
    ] = None
    compressor: Annotated[
        Annotated[tuple[Compressor, ...], Meta(max_length=3)] | None,
        Meta(
            description="Encodings for answers that are not encoded, in the order of preference if the "
            "client has none."
        ),
    ] = None
    compression: Annotated[
        Annotated[tuple[Compressor, ...], Meta(max_length=3)] | None,
        Meta(description="The older name of `compressor`. Set only one of the two."),
    ] = None
    bandwidth_limit: Annotated[
        BandwidthLimit | None, Meta(description="Limits the bandwidth of responses.")
    ] = None
    load_balancer: Annotated[
        LoadBalancer | None, Meta(description="Selects the endpoint of a backend for each request.")
    ] = None
    session_persistence: Annotated[
        TrafficSession | None,
        Meta(description="Keeps a client at the endpoint that served its first request."),
    ] = None
    response_override: Annotated[
        Annotated[tuple[ResponseOverride, ...], Meta(max_length=64)] | None,
        Meta(
            description="Replaces answers of the backend or the proxy. gRPC answers are not replaced.",
        ),
    ] = None


class BackendTrafficPolicy(Resource, frozen=True, kw_only=True):
    """Settings for requests and backends of a Gateway, a listener, a route or one rule of it."""

    metadata: ObjectMeta
    spec: BackendTrafficPolicySpec
    #: Written by the decoder and never by a document: it only keeps the targets of one with a mistake closed.
    closed: Closed | None = None
    #: As well: what fields that are not served mean it for, or all that a closed one is meant for.
    aimed: tuple[PolicyTarget, ...] = ()
    #: Written by whoever keeps the last good version: what is wrong with the one after it.
    newer: Newer | None = None
    #: Written by the decoder of a policy of another project (`--adopt`).
    adopted: AdoptedPolicy | None = None
