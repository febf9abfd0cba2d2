"""Backend: BackendTrafficPolicy spec.circuitBreaker and spec.healthCheck -> leaves of an ir.Traffic.

In: the fields. Out: the same in milliseconds; a problem for every mistake.
Source: BackendTrafficPolicy, with the fields of Envoy Gateway.
Must never: fill in a number that is not set.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicySpec
from edgefast.api.edge.circuit_breaker import CircuitBreaker
from edgefast.api.edge.health_check import PassiveHealthCheck
from edgefast.api.validation.backend import MAX_EJECTION, check_budget
from edgefast.translate.policy.ext_auth import read_bounded
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["read_count", "translate_budget", "translate_passive"]

_MOST = 4294967295


def read_count(given: int | None, report: Report, path: str) -> int | None:
    """Return a number that is one of them; None: it is not said."""
    if given is not None and not 0 <= given <= _MOST:
        report.refuse(path, "Invalid", f"{given} (expected 0 to {_MOST})", condition="Invalid")
    return given


def translate_budget(
    breaker: CircuitBreaker | None, report: Report, path: str
) -> ir.RetryBudget | None:
    """Translate the budget of a breaker; None: it has none."""
    if breaker is None or breaker.retry_budget is None:
        return None
    budget = breaker.retry_budget
    refuse_violations(check_budget(budget), report, f"{path}.retryBudget", "Invalid")
    share = budget.percent
    where = f"{path}.retryBudget"
    least = read_count(budget.min_retry_concurrency, report, f"{where}.minRetryConcurrency") or 0
    for name, number, first in (
        ("numerator", share.numerator, 0),
        ("denominator", share.denominator, 1),
    ):
        if not first <= number <= _MOST:
            message = f"{number} (expected {first} to {_MOST})"
            report.refuse(f"{where}.percent.{name}", "Invalid", message, condition="Invalid")
    return ir.RetryBudget(share.numerator, share.denominator, least)


def translate_passive(spec: BackendTrafficPolicySpec, report: Report) -> ir.OutlierDetection | None:
    """Translate what is said of endpoints that fail; None: nothing is."""
    check = spec.health_check
    if check is None or check.passive is None:
        return None
    return _translate_passive(check.passive, report, "spec.healthCheck.passive")


def _translate_passive(one: PassiveHealthCheck, report: Report, path: str) -> ir.OutlierDetection:
    interval = 0
    if one.interval is not None:
        interval = read_bounded(one.interval, MAX_EJECTION, report, f"{path}.interval")
    if not 0 <= one.max_ejection_percent <= 100:
        message = f"{one.max_ejection_percent} (expected 0 to 100)"
        report.refuse(f"{path}.maxEjectionPercent", "Invalid", message, condition="Invalid")
    for name, number in (
        ("consecutive5XxErrors", one.consecutive_5xx_errors),
        ("consecutiveGatewayErrors", one.consecutive_gateway_errors),
        ("consecutiveLocalOriginFailures", one.consecutive_local_origin_failures),
    ):
        read_count(number, report, f"{path}.{name}")
    share = one.failure_percentage_threshold
    if share is not None and not 1 <= share <= 100:
        message = f"{share} (expected 1 to 100)"
        report.refuse(f"{path}.failurePercentageThreshold", "Invalid", message, condition="Invalid")
    where = f"{path}.baseEjectionTime"
    return ir.OutlierDetection(
        server=one.consecutive_5xx_errors,
        gateway=one.consecutive_gateway_errors,
        local=one.consecutive_local_origin_failures
        if one.split_external_local_origin_errors
        else None,
        base=read_bounded(one.base_ejection_time, MAX_EJECTION, report, where),
        interval=interval,
        failures=share or 0,
        percent=one.max_ejection_percent,
        always_one=one.always_eject_one_endpoint,
    )
