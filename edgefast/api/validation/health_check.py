"""Health check: rules about active health checks, each with its CEL twin for the CRD.

In: parts of BackendTrafficPolicy healthCheck.active. Out: violations; `cel` is the same rule for an
API server.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.active_health_check import (
    ActiveHealthCheck,
    ActiveHealthCheckPayload,
    HTTPActiveHealthChecker,
)
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

#: Milliseconds between two questions to an endpoint, and until the first one.
LEAST_INTERVAL = 100
MOST_INTERVAL = 3_600_000
MOST_JITTER = 60_000


@BOOK.on(
    ActiveHealthCheck,
    "type",
    "http",
    "tcp",
    "grpc",
    cel="(self.type == 'HTTP') == has(self.http) && (self.type == 'TCP' || !has(self.tcp)) && "
    "(self.type == 'GRPC' || !has(self.grpc))",
    message="only the field of http, tcp and grpc that matches type is allowed; http is required "
    "with type HTTP",
)
def check_active(one: ActiveHealthCheck) -> Iterable[Violation]:
    """One thing is asked."""
    if one.type == "HTTP" and one.http is None:
        yield Violation(("http",), "Required", "with type HTTP")
    for kind, name in (("HTTP", "http"), ("TCP", "tcp"), ("GRPC", "grpc")):
        if one.type != kind and getattr(one, name) is not None:
            yield Violation((name,), "Forbidden", f"with type {one.type}")


@BOOK.on(
    ActiveHealthCheck,
    "interval",
    "timeout",
    "initial_jitter",
    cel="(has(self.interval) ? duration(self.interval) : duration('3s')) >= duration('100ms') && "
    "(has(self.interval) ? duration(self.interval) : duration('3s')) <= duration('1h') && "
    "(has(self.timeout) ? duration(self.timeout) : duration('1s')) > duration('0s') && "
    "(has(self.timeout) ? duration(self.timeout) : duration('1s')) <= duration('1h') && "
    "(!has(self.initialJitter) || duration(self.initialJitter) <= duration('1m'))",
    message="interval must be 100ms to 1h, timeout more than 0s and at most 1h, initialJitter at most 1m",
)
def check_times(one: ActiveHealthCheck) -> Iterable[Violation]:
    """Nobody is asked without end, or all the time."""
    interval, timeout = parse_duration(one.interval), parse_duration(one.timeout)
    if not LEAST_INTERVAL <= interval <= MOST_INTERVAL:
        yield Violation(("interval",), "Invalid", f'"{one.interval}" (expected 100ms to 1h)')
    if not 0 < timeout <= MOST_INTERVAL:
        message = f'"{one.timeout}" (expected more than 0s, at most 1h)'
        yield Violation(("timeout",), "Invalid", message)
    if one.initial_jitter is not None and parse_duration(one.initial_jitter) > MOST_JITTER:
        yield Violation(
            ("initialJitter",), "Invalid", f'"{one.initial_jitter}" (expected at most 1m)'
        )


@BOOK.on(
    HTTPActiveHealthChecker,
    "request_body",
    "method",
    cel="!has(self.requestBody) || has(self.method) && self.method in ['POST', 'PUT']",
    message="requestBody needs the method POST or PUT",
)
def check_body(one: HTTPActiveHealthChecker) -> Iterable[Violation]:
    """A method without a body has none."""
    if one.request_body is not None and one.method not in ("POST", "PUT"):
        yield Violation(("requestBody",), "Forbidden", f"with method {one.method}")


@BOOK.on(
    ActiveHealthCheckPayload,
    "type",
    "text",
    "binary",
    cel="self.type == 'Text' ? has(self.text) && !has(self.binary) : has(self.binary) && !has(self.text)",
    message="exactly the one of text and binary that matches type must be set",
)
def check_payload(one: ActiveHealthCheckPayload) -> Iterable[Violation]:
    """It is said in one way."""
    named, other = ("text", "binary") if one.type == "Text" else ("binary", "text")
    if getattr(one, named) is None:
        yield Violation((named,), "Required", f"with type {one.type}")
    if getattr(one, other) is not None:
        yield Violation((other,), "Forbidden", f"with type {one.type}")
