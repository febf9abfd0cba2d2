"""Health check: BackendTrafficPolicy spec.healthCheck.active -> ir.HealthCheck.

In: the fields. Out: the same in milliseconds and bytes; a problem for every mistake.
Source: BackendTrafficPolicy, with the fields of Envoy Gateway; grpc.health.v1 for type GRPC.
Must never: check an endpoint more often than the policy sets.
"""

from __future__ import annotations

import base64
import binascii
import re

import msgspec

from edgefast import ir
from edgefast.api.edge.active_health_check import (
    ActiveHealthCheck,
    ActiveHealthCheckPayload,
    HTTPActiveHealthChecker,
    TCPActiveHealthChecker,
)
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicySpec
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.health_check import (
    LEAST_INTERVAL,
    MOST_INTERVAL,
    MOST_JITTER,
    check_active,
    check_body,
    check_payload,
)
from edgefast.diagnostics.problem import supported_text
from edgefast.diagnostics.redact import show_query
from edgefast.translate.policy.ext_auth import read_bounded
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["read_panic", "translate_active"]

_TYPES = ("HTTP", "TCP", "GRPC")
_MOST_BYTES = 4096
_PATH = r"/[!-~]{0,1023}"
_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


def read_panic(spec: BackendTrafficPolicySpec, report: Report) -> int | None:
    """Return the percentage below which all endpoints are used; None: nothing is said."""
    found = spec.health_check.panic_threshold if spec.health_check is not None else None
    if found is not None and not 0 <= found <= 100:
        message = f"{found} (expected 0 to 100)"
        report.refuse("spec.healthCheck.panicThreshold", "Invalid", message, condition="Invalid")
    return found


def translate_active(spec: BackendTrafficPolicySpec, report: Report) -> ir.HealthCheck | None:
    """Translate what endpoints are asked; None: nothing. What a report refuses of is not to be used."""
    check = spec.health_check.active if spec.health_check is not None else None
    return _translate(check, report, "spec.healthCheck.active") if check is not None else None


def _translate(one: ActiveHealthCheck, report: Report, path: str) -> ir.HealthCheck:
    if one.type not in _TYPES:
        message = supported_text(one.type, _TYPES)
        report.refuse(f"{path}.type", "NotSupported", message, condition="Invalid")
    refuse_violations(check_active(one), report, path, "Invalid")
    interval = read_bounded(one.interval, MOST_INTERVAL, report, f"{path}.interval")
    if 0 < interval < LEAST_INTERVAL:
        message = f'"{one.interval}" (expected at least {LEAST_INTERVAL}ms)'
        report.refuse(f"{path}.interval", "Invalid", message, condition="Invalid")
    common = ir.HealthCheck(
        kind="grpc",
        interval=max(interval, LEAST_INTERVAL),
        timeout=read_bounded(one.timeout, MOST_INTERVAL, report, f"{path}.timeout"),
        jitter=_read_jitter(one.initial_jitter, report, f"{path}.initialJitter"),
        unhealthy=_read_threshold(one.unhealthy_threshold, report, f"{path}.unhealthyThreshold"),
        healthy=_read_threshold(one.healthy_threshold, report, f"{path}.healthyThreshold"),
        port=_read_port(one, report, f"{path}.overrides.port"),
        service=(one.grpc.service or "") if one.grpc is not None else "",
    )
    if one.type == "HTTP":
        return _of_http(one.http, common, report, f"{path}.http")
    if one.type == "TCP":
        return _of_tcp(one.tcp or TCPActiveHealthChecker(), common, report, f"{path}.tcp")
    return common


def _of_http(
    http: HTTPActiveHealthChecker | None, common: ir.HealthCheck, report: Report, path: str
) -> ir.HealthCheck:
    if http is None:  # which is told
        return common
    # Of what goes into a head nothing is taken that a schema would have refused.
    if not re.fullmatch(_PATH, http.path):
        message = f'"{show_query(http.path)}" (expected a path that begins with /)'
        report.refuse(f"{path}.path", "Invalid", message, condition="Invalid")
    host = http.hostname
    if host is not None and (len(host) > 253 or not re.fullmatch(_NAME, host)):
        message = f'"{http.hostname}" (expected a DNS name)'
        report.refuse(f"{path}.hostname", "Invalid", message, condition="Invalid")
    for name, statuses in (
        ("expectedStatuses", http.expected_statuses),
        ("retriableStatuses", http.retriable_statuses),
    ):
        for at, status in enumerate(statuses):
            if not 100 <= status <= 599:
                where, message = f"{path}.{name}[{at}]", f"{status} (expected 100 to 599)"
                report.refuse(where, "Invalid", message, condition="Invalid")
    refuse_violations(check_body(http), report, path, "Invalid")
    return msgspec.structs.replace(
        common,
        kind="http",
        path=http.path,
        host=http.hostname or "",
        method=http.method,
        statuses=tuple(sorted(set(http.expected_statuses))) or (200,),
        counted=tuple(sorted(set(http.retriable_statuses) - set(http.expected_statuses))),
        expects=_read_payload(http.expected_response, report, f"{path}.expectedResponse"),
        sends=_read_payload(http.request_body, report, f"{path}.requestBody"),
    )


def _of_tcp(
    tcp: TCPActiveHealthChecker, common: ir.HealthCheck, report: Report, path: str
) -> ir.HealthCheck:
    return msgspec.structs.replace(
        common,
        kind="tcp",
        sends=_read_payload(tcp.send, report, f"{path}.send"),
        expects=_read_payload(tcp.receive, report, f"{path}.receive"),
    )


def _read_jitter(given: str | None, report: Report, path: str) -> int:
    """0s is none."""
    if given is None:
        return 0
    try:
        if parse_duration(given) == 0:
            return 0
    except ValueError:
        pass  # which is told
    return read_bounded(given, MOST_JITTER, report, path)


def _read_threshold(given: int, report: Report, path: str) -> int:
    if not 1 <= given <= 100:
        report.refuse(path, "Invalid", f"{given} (expected 1 to 100)", condition="Invalid")
        return 1
    return given


def _read_port(one: ActiveHealthCheck, report: Report, path: str) -> int:
    """0 is the endpoint's own."""
    if one.overrides is None:
        return 0
    if not 1 <= one.overrides.port <= 65535:
        message = f"{one.overrides.port} (expected 1 to 65535)"
        report.refuse(path, "Invalid", message, condition="Invalid")
        return 0
    return one.overrides.port


def _read_payload(one: ActiveHealthCheckPayload | None, report: Report, path: str) -> bytes:
    if one is None:
        return b""
    refuse_violations(check_payload(one), report, path, "Invalid")
    if one.type == "Text":
        found = (one.text or "").encode()
    else:
        try:
            found = base64.b64decode(one.binary or "", validate=True)
        except (ValueError, binascii.Error):
            report.refuse(f"{path}.binary", "Invalid", "is not valid Base64", condition="Invalid")
            return b""
    if len(found) > _MOST_BYTES:
        message = f"{len(found)} bytes (expected at most {_MOST_BYTES})"
        report.refuse(path, "TooLong", message, condition="Invalid")
    return found
