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
            description="Bytes; a larger body is answered 413. No more than EdgeProxy `http.bodySize` allows. Bodies are "
            "counted as they pass and not gathered: a backend may have seen the beginning of one that is cut."
        ),
    ]


class HTTPTrafficTimeout(Element, frozen=True, kw_only=True):
    """Timeouts of exchanges; 0s is without end."""

    request_timeout: Annotated[
        Duration | None,
        Meta(
            description="Until the whole answer is there; 504 past it. `timeouts.request` of a route's rule comes first."
        ),
    ] = None
    stream_idle_timeout: Annotated[
        Duration | None, Meta(description="While neither side sends anything.")
    ] = None
    send_timeout: Annotated[
        Duration | None, Meta(description="While the backend takes nothing of what waits for it.")
    ] = None


class TrafficTimeout(Element, frozen=True, kw_only=True):
    """Timeouts, by protocol."""

    http: Annotated[HTTPTrafficTimeout | None, Meta(description="Of HTTP and gRPC.")] = None


class BackendTrafficPolicySpec(Element, frozen=True, kw_only=True):
    """`spec` of a BackendTrafficPolicy."""

    target_refs: TargetReferences
    merge_type: MergeType = "Inherit"
    request_buffer: Annotated[
        RequestBuffer | None, Meta(description="How large bodies of requests may be.")
    ] = None
    timeout: Annotated[TrafficTimeout | None, Meta(description="Timeouts.")] = None
    circuit_breaker: Annotated[
        CircuitBreaker | None, Meta(description="How much of a backend there may be at once.")
    ] = None
    health_check: Annotated[
        HealthCheck | None, Meta(description="Which endpoints are left out because they fail.")
    ] = None
    fault_injection: Annotated[
        FaultInjection | None,
        Meta(description="Faults on purpose, to see what clients do about them."),
    ] = None
    compressor: Annotated[
        Annotated[tuple[Compressor, ...], Meta(max_length=3)] | None,
        Meta(
            description="Encodings for answers that have none, in order of preference where clients have none."
        ),
    ] = None
    compression: Annotated[
        Annotated[tuple[Compressor, ...], Meta(max_length=3)] | None,
        Meta(description="The older name of `compressor`; one of both."),
    ] = None
    load_balancer: Annotated[
        LoadBalancer | None, Meta(description="Which endpoint of a backend gets a request.")
    ] = None
    session_persistence: Annotated[
        TrafficSession | None,
        Meta(description="Clients stay with the endpoint of a backend that served them first."),
    ] = None
    response_override: Annotated[
        Annotated[tuple[ResponseOverride, ...], Meta(max_length=64)] | None,
        Meta(
            description="Answers in place of others, of the backend or the proxy; calls of gRPC have theirs.",
        ),
    ] = None


class BackendTrafficPolicy(Resource, frozen=True, kw_only=True):
    """How requests and backends are treated: for a Gateway, a listener, a route or one rule of it."""

    metadata: ObjectMeta
    spec: BackendTrafficPolicySpec
    #: Written by the decoder and never by a document: it only keeps the targets of one with a mistake closed.
    closed: Closed | None = None
    #: As well: what fields that are not served mean it for, or all that a closed one is meant for.
    aimed: tuple[Aim, ...] = ()
    #: Written by whoever keeps the last good version: what is wrong with the one after it.
    newer: Newer | None = None
