"""BackendTrafficPolicy: how requests and backends are treated: the size of bodies, timeouts, faults, endpoints.

In: `gateway.edge.io/v1alpha1` documents. Out: `BackendTrafficPolicy`. Its fields have the names that Envoy Gateway gives them.
Source: GEP-713 (attachment). What Envoy Gateway has and this release lacks stands in `model/unserved.py`.
Must never: fill in what is not said; each leaf is merged on its own.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgefast.resources.edge.circuitbreaker import CircuitBreaker
from edgefast.resources.edge.compression import Compressor
from edgefast.resources.edge.fault import FaultInjection
from edgefast.resources.edge.healthcheck import HealthCheck
from edgefast.resources.edge.loadbalancer import LoadBalancer
from edgefast.resources.edge.policytarget import Aim, MergeType, Newer, TargetReferences
from edgefast.resources.edge.responseoverride import ResponseOverride
from edgefast.resources.edge.sessionpersistence import TrafficSession
from edgefast.resources.model.closed import Closed
from edgefast.resources.model.fields import Duration, Element, Resource, Size
from edgefast.resources.model.meta import ObjectMeta


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


class TrafficTimeout(Element, frozen=True, kw_only=True):
    """Timeouts, by protocol."""

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
    aimed: tuple[Aim, ...] = ()
    #: Written by whoever keeps the last good version: what is wrong with the one after it.
    newer: Newer | None = None
