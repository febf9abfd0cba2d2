"""Traffic: one BackendTrafficPolicy -> its unit.

In: a policy. Out: an `EdgePolicyOutcome` with the unit "traffic", or with "closed" when the policy
has a mistake. An unreadable limit is therefore never omitted. The data plane merges the leaves of
the unit per request.
Source: BackendTrafficPolicy, with the fields of Envoy Gateway; durations are those of the Gateway
API (GEP-2257).
Must never: fill in a leaf that is not set.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicy,
    HTTPTrafficTimeout,
)
from edgefast.api.edge.circuit_breaker import CircuitBreaker
from edgefast.api.kinds import ref_of
from edgefast.api.model.units import parse_duration, parse_size
from edgefast.api.validation.policy_target import check_backend_leaves
from edgefast.translate.backend.session_persistence import translate_session
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.policy.backend import read_count, translate_budget, translate_passive
from edgefast.translate.policy.bandwidth import translate_bandwidth
from edgefast.translate.policy.compression import translate_compression
from edgefast.translate.policy.fault import translate_fault
from edgefast.translate.policy.health_check import read_panic, translate_active
from edgefast.translate.policy.load_balancer import translate_load_balancer
from edgefast.translate.policy.outcome import (
    Aims,
    EdgePolicyOutcome,
    check_whole,
    make_traffic_outcome,
)
from edgefast.translate.policy.response_override import translate_overrides
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["translate_traffic"]


def translate_traffic(
    policy: BackendTrafficPolicy, targeted: Aims, reader: Reader
) -> EdgePolicyOutcome:
    """Translate one policy; `targeted`: what it is for that no targetRef says."""
    report = Report(ref_of(policy))
    targets, closed = check_whole(policy, targeted, report)
    before = len(report.refused)
    refuse_violations(check_backend_leaves(policy.spec), report, "spec", "Invalid")
    made, clusters = _translate(policy, reader, report)
    wrong = (*report.refused[before:], *report.unresolved)
    if wrong and not closed:
        closed = wrong[0].text()
    message = made if made != ir.Traffic() else None
    return make_traffic_outcome(
        policy, (targets, targeted), ("traffic", message), closed, reader, report, clusters
    )


def _translate(
    policy: BackendTrafficPolicy, reader: Reader, report: Report
) -> tuple[ir.Traffic, tuple[ClusterRef, ...]]:
    spec = policy.spec
    size = None
    if spec.request_buffer is not None:
        size = _read_size(spec.request_buffer.limit, report, "spec.requestBuffer.limit")
    http = spec.timeout.http if spec.timeout is not None else None
    tcp = spec.timeout.tcp if spec.timeout is not None else None
    path = "spec.timeout.http"
    fault = None
    if spec.fault_injection is not None:
        fault = translate_fault(spec.fault_injection, report, "spec.faultInjection")
    override: tuple[ir.ResponseOverride, ...] | None = None
    clusters: tuple[ClusterRef, ...] = ()
    if spec.response_override is not None:
        namespace, where = policy.metadata.namespace, "spec.responseOverride"
        override, clusters = translate_overrides(
            spec.response_override, namespace, reader, report, where
        )
    breaker, bounds = spec.circuit_breaker or CircuitBreaker(), "spec.circuitBreaker"
    http = http or HTTPTrafficTimeout()
    balancer = None
    if spec.load_balancer is not None:
        balancer = translate_load_balancer(spec.load_balancer, report, "spec.loadBalancer")
    made = ir.Traffic(
        body_size=size,
        compression=translate_compression(spec, report),
        bandwidth=translate_bandwidth(spec.bandwidth_limit, report, "spec.bandwidthLimit"),
        fault=fault,
        load_balancer=balancer,
        session=translate_session(
            spec.session_persistence, report, "spec.sessionPersistence", "Invalid"
        ),
        override=override,
        request_timeout=_read_time(http.request_timeout, report, f"{path}.requestTimeout"),
        idle_timeout=_read_time(http.stream_idle_timeout, report, f"{path}.streamIdleTimeout"),
        send_timeout=_read_time(http.send_timeout, report, f"{path}.sendTimeout"),
        connect_timeout=_read_time(
            tcp.connect_timeout if tcp is not None else None,
            report,
            "spec.timeout.tcp.connectTimeout",
        ),
        retry_timeout=_read_time(http.retry_timeout, report, f"{path}.retryTimeout"),
        max_connections=read_count(breaker.max_connections, report, f"{bounds}.maxConnections"),
        max_endpoint_connections=read_count(
            breaker.per_endpoint.max_connections if breaker.per_endpoint is not None else None,
            report,
            f"{bounds}.perEndpoint.maxConnections",
        ),
        max_connection_requests=read_count(
            breaker.max_requests_per_connection, report, f"{bounds}.maxRequestsPerConnection"
        ),
        max_pending=read_count(
            breaker.max_pending_requests, report, f"{bounds}.maxPendingRequests"
        ),
        max_requests=read_count(
            breaker.max_parallel_requests, report, f"{bounds}.maxParallelRequests"
        ),
        max_retries=read_count(
            breaker.max_parallel_retries, report, f"{bounds}.maxParallelRetries"
        ),
        retry_budget=translate_budget(breaker, report, bounds),
        outlier=translate_passive(spec, report),
        check=translate_active(spec, report),
        panic=read_panic(spec, report),
    )
    return made, clusters


def _read_size(given: int | str, report: Report, path: str) -> int:
    try:
        size = parse_size(given)
    except ValueError:
        size = 0
    if size < 1:  # 0 is without end where it is read, which nobody means who writes it
        message = f'"{given}" (expected a size such as 32768, 32KiB or 10Mi)'
        report.refuse(path, "Invalid", message, condition="Invalid")
    return size


def _read_time(given: str | None, report: Report, path: str) -> int | None:
    if given is None:
        return None
    try:
        return parse_duration(given)
    except ValueError:
        message = f'"{given}" (expected a duration such as 10s, 500ms or 1h30m)'
        report.refuse(path, "Invalid", message, condition="Invalid")
    return None
