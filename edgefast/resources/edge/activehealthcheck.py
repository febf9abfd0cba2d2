"""Endpoints that are asked whether they are well, as a BackendTrafficPolicy says it.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Must never: say how an endpoint is; only what is asked of it, how often, and what counts.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from edgefast.resources.model.fields import Duration, Element, PortNumber, PreciseHostname, expects

Status = Annotated[int, Meta(ge=100, le=599)]
_Statuses = Annotated[tuple[Status, ...], Meta(max_length=64)]
_Threshold = Annotated[int, Meta(ge=1, le=100)]


class ActiveHealthCheckPayload(Element, frozen=True, kw_only=True):
    """Bytes, as text or in Base64."""

    hides_values: ClassVar[bool] = True
    type: Annotated[Literal["Text", "Binary"], Meta(description="Which of the two it is.")]
    text: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096)] | None, Meta(description="As they are.")
    ] = None
    binary: Annotated[
        Annotated[str, Meta(min_length=1, max_length=5464)] | None, Meta(description="In Base64.")
    ] = None


class HTTPActiveHealthChecker(Element, frozen=True, kw_only=True):
    """A request, and what answers are good."""

    path: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=1024,
                pattern=r"^/[!-~]*\Z",
                extra=expects("a path that begins with /"),
            ),
        ],
        Meta(description="Its path, with a query if it has one."),
    ]
    hostname: Annotated[
        PreciseHostname | None,
        Meta(description="Its Host; the endpoint's own name or address without it."),
    ] = None
    method: Annotated[
        Literal["GET", "HEAD", "OPTIONS", "POST", "PUT"], Meta(description="Its method.")
    ] = "GET"
    request_body: Annotated[
        ActiveHealthCheckPayload | None, Meta(description="Its body, with POST or PUT.")
    ] = None
    expected_statuses: Annotated[
        _Statuses, Meta(description="Statuses that are good; 200 without any.")
    ] = ()
    retriable_statuses: Annotated[
        _Statuses,
        Meta(
            description="Statuses that count towards `unhealthyThreshold`; any other that is not good is enough at once."
        ),
    ] = ()
    expected_response: Annotated[
        ActiveHealthCheckPayload | None,
        Meta(description="What the first 64 KiB of a good answer's body have in them."),
    ] = None


class TCPActiveHealthChecker(Element, frozen=True, kw_only=True):
    """A connection; what is said on it, and what has to come."""

    send: Annotated[
        ActiveHealthCheckPayload | None, Meta(description="What is sent once it is there.")
    ] = None
    receive: Annotated[
        ActiveHealthCheckPayload | None, Meta(description="What has to come, somewhere in 64 KiB.")
    ] = None


class GRPCActiveHealthChecker(Element, frozen=True, kw_only=True):
    """A call of grpc.health.v1.Health/Check."""

    service: Annotated[
        Annotated[str, Meta(max_length=253)] | None,
        Meta(description="Which service of the server; all of it without."),
    ] = None


class HealthCheckOverrides(Element, frozen=True, kw_only=True):
    """What is different for checks."""

    port: Annotated[PortNumber, Meta(description="Where endpoints are asked.")]


class ActiveHealthCheck(Element, frozen=True, kw_only=True):
    """What endpoints are asked, once for each proxy and interval, however many routes and workers they have."""

    type: Annotated[Literal["HTTP", "TCP", "GRPC"], Meta(description="Which of the three it is.")]
    timeout: Annotated[
        Duration,
        Meta(
            description="Until the answer is there; an endpoint is asked again when it has answered, or this is over."
        ),
    ] = "1s"
    interval: Annotated[
        Duration, Meta(description="Between two questions; 100ms to 1h, spread by a tenth.")
    ] = "3s"
    initial_jitter: Annotated[
        Duration | None, Meta(description="The first one comes within this time, at most 1m.")
    ] = None
    unhealthy_threshold: Annotated[
        _Threshold, Meta(description="So many failures in a row, and it gets no requests.")
    ] = 3
    healthy_threshold: Annotated[
        _Threshold, Meta(description="So many good answers in a row, and it gets requests again.")
    ] = 1
    http: Annotated[HTTPActiveHealthChecker | None, Meta(description="Of type HTTP.")] = None
    tcp: Annotated[TCPActiveHealthChecker | None, Meta(description="Of type TCP.")] = None
    grpc: Annotated[GRPCActiveHealthChecker | None, Meta(description="Of type GRPC.")] = None
    overrides: Annotated[
        HealthCheckOverrides | None, Meta(description="What is different for checks.")
    ] = None
