"""Retry constraint: XBackendTrafficPolicy -> its unit, the bound of retries in an interval.

In: a policy. Out: an `EdgePolicyOutcome` with the unit "traffic", which sets only the constraint,
or "closed" when it has a mistake.
Source: Gateway API XBackendTrafficPolicy (GEP-3388); durations are those of GEP-2257, their bounds
those of the CRD.
Must never: omit a bound that cannot be read.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.gateway.xbackendtrafficpolicy import XBackendTrafficPolicy
from edgefast.api.kinds import ref_of
from edgefast.api.model.units import parse_duration
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.policy.outcome import (
    Aims,
    EdgePolicyOutcome,
    check_whole,
    make_traffic_outcome,
)
from edgefast.translate.report.report import Report

__all__ = ["MAX_INTERVAL", "translate_constraint"]

#: Milliseconds; EF_WINDOW_MAX_MS of csrc/window.h.
MAX_INTERVAL = 3_600_000


def translate_constraint(
    policy: XBackendTrafficPolicy, targeted: Aims, reader: Reader
) -> EdgePolicyOutcome:
    """Translate one policy; `targeted`: what it is for that no targetRef says."""
    report = Report(ref_of(policy))
    targets, closed = check_whole(policy, targeted, report)
    before = len(report.refused)
    made = _translate(policy, report)
    if len(report.refused) > before and not closed:
        closed = report.refused[before].text()
    message = ir.Traffic(retry_constraint=made) if made else None
    return make_traffic_outcome(
        policy, (targets, targeted), ("xtraffic", message), closed, reader, report
    )


def _translate(policy: XBackendTrafficPolicy, report: Report) -> ir.RetryConstraint | None:
    message, path = policy.spec.retry_constraint, "spec.retryConstraint"
    if message is None:
        return None
    budget, rate = message.budget, message.min_retry_rate
    if not 0 <= budget.percent <= 100:
        text = f"{budget.percent} (expected 0 to 100)"
        report.refuse(f"{path}.budget.percent", "Invalid", text, condition="Invalid")
    if not 1 <= rate.count <= 1_000_000:
        text = f"{rate.count} (expected 1 to 1000000)"
        report.refuse(f"{path}.minRetryRate.count", "Invalid", text, condition="Invalid")
    return ir.RetryConstraint(
        percent=budget.percent,
        interval=_read(budget.interval, 1000, "1s", report, f"{path}.budget.interval"),
        count=rate.count,
        count_interval=_read(rate.interval, 1, "1ms", report, f"{path}.minRetryRate.interval"),
    )


def _read(given: str, least: int, text: str, report: Report, path: str) -> int:
    try:
        found = parse_duration(given)
    except ValueError:
        found = 0
    if not least <= found <= MAX_INTERVAL:
        message = f'"{given}" (expected a duration from {text} to 1h)'
        report.refuse(path, "Invalid", message, condition="Invalid")
    return found
