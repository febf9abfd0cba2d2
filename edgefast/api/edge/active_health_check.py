"""Active health check: healthCheck.active of a BackendTrafficPolicy.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy
Gateway gives them.
Must never: hold the health of an endpoint; only the check, its interval, and what counts.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from edgefast.api.model.fields import Duration, Element, PortNumber, PreciseHostname, expects

Status = Annotated[int, Meta(ge=100, le=599)]
_Statuses = Annotated[tuple[Status, ...], Meta(max_length=64)]
_Threshold = Annotated[int, Meta(ge=1, le=100)]


class ActiveHealthCheckPayload(Element, frozen=True, kw_only=True):
    """Bytes, as text or in Base64."""

    hides_values: ClassVar[bool] = True
    type: Annotated[Literal["Text", "Binary"], Meta(description="Selects `text` or `binary`.")]
    text: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096)] | None,
        Meta(description="The bytes as text."),
    ] = None
    binary: Annotated[
        Annotated[str, Meta(min_length=1, max_length=5464)] | None, Meta(description="In Base64.")
    ] = None


class HTTPActiveHealthChecker(Element, frozen=True, kw_only=True):
    """An HTTP request and its expected answer."""

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
        Meta(description="Path of the request, with an optional query."),
    ]
    hostname: Annotated[
        PreciseHostname | None,
        Meta(description="Host of the request. Absent: the endpoint's name or address."),
    ] = None
    method: Annotated[
        Literal["GET", "HEAD", "OPTIONS", "POST", "PUT"], Meta(description="Its method.")
    ] = "GET"
    request_body: Annotated[
        ActiveHealthCheckPayload | None,
        Meta(description="Body of the request. Only with POST or PUT."),
    ] = None
    expected_statuses: Annotated[
        _Statuses, Meta(description="Statuses that mean healthy. Absent: 200.")
    ] = ()
    retriable_statuses: Annotated[
        _Statuses,
        Meta(
            description="Statuses that count towards `unhealthyThreshold`. Any other unexpected status "
            "makes the endpoint unhealthy immediately."
        ),
    ] = ()
    expected_response: Annotated[
        ActiveHealthCheckPayload | None,
        Meta(description="Bytes that the first 64 KiB of the answer's body must contain."),
    ] = None


class TCPActiveHealthChecker(Element, frozen=True, kw_only=True):
    """A TCP connection, with bytes to send and bytes to expect."""

    send: Annotated[
        ActiveHealthCheckPayload | None,
        Meta(description="Bytes to send after the connection is open."),
    ] = None
    receive: Annotated[
        ActiveHealthCheckPayload | None,
        Meta(description="Bytes that the first 64 KiB of the answer must contain."),
    ] = None


class GRPCActiveHealthChecker(Element, frozen=True, kw_only=True):
    """A call of grpc.health.v1.Health/Check."""

    service: Annotated[
        Annotated[str, Meta(max_length=253)] | None,
        Meta(description="Name of the gRPC service to check. Absent: the whole server."),
    ] = None


class HealthCheckOverrides(Element, frozen=True, kw_only=True):
    """Settings that differ for checks."""

    port: Annotated[PortNumber, Meta(description="Changes the address of checks.")]


class ActiveHealthCheck(Element, frozen=True, kw_only=True):
    """Active health check. Each proxy checks an endpoint once in an interval, independent of the number of routes and workers."""

    type: Annotated[Literal["HTTP", "TCP", "GRPC"], Meta(description="Protocol of the check.")]
    timeout: Annotated[
        Duration,
        Meta(
            description="Time limit for an answer. The next check starts after the answer or this "
            "time."
        ),
    ] = "1s"
    interval: Annotated[
        Duration,
        Meta(description="Time between two checks, 100ms to 1h, with a jitter of 10 percent."),
    ] = "3s"
    initial_jitter: Annotated[
        Duration | None, Meta(description="The first check starts within this time, at most 1m.")
    ] = None
    unhealthy_threshold: Annotated[
        _Threshold,
        Meta(
            description="Failures in a row after which an endpoint is unhealthy and gets no requests."
        ),
    ] = 3
    healthy_threshold: Annotated[
        _Threshold,
        Meta(
            description="Good answers in a row after which an endpoint is healthy and gets requests "
            "again."
        ),
    ] = 1
    http: Annotated[HTTPActiveHealthChecker | None, Meta(description="Settings of type HTTP.")] = (
        None
    )
    tcp: Annotated[TCPActiveHealthChecker | None, Meta(description="Settings of type TCP.")] = None
    grpc: Annotated[GRPCActiveHealthChecker | None, Meta(description="Settings of type GRPC.")] = (
        None
    )
    overrides: Annotated[
        HealthCheckOverrides | None, Meta(description="Settings that differ for checks.")
    ] = None
