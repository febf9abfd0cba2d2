"""Fault: BackendTrafficPolicy spec.faultInjection -> ir.Fault.

In: the fields. Out: the same in milliseconds and millionths; a problem for every mistake.
Source: BackendTrafficPolicy, with the fields of Envoy Gateway.
Must never: make more requests fail than the policy sets.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.edge.backendtrafficpolicy import FaultInjection
from edgefast.api.validation.traffic import MAX_DELAY, check_abort, check_fault
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.policy.ext_auth import read_bounded
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["translate_fault"]

_MILLION = 1_000_000


def translate_fault(given: FaultInjection, report: Report, path: str) -> ir.Fault:
    """Translate it; what a report refuses of is not to be used."""
    refuse_violations(check_fault(given), report, path, "Invalid")
    delay = share = 0
    if given.delay is not None:
        where = f"{path}.delay"
        delay = read_bounded(given.delay.fixed_delay, MAX_DELAY, report, f"{where}.fixedDelay")
        share = _read_share(given.delay.percentage, report, f"{where}.percentage")
    if given.abort is None:
        return ir.Fault(delay=delay, delay_share=share)
    abort, where = given.abort, f"{path}.abort"
    refuse_violations(check_abort(abort), report, where, "Invalid")
    if abort.http_status is not None and not 200 <= abort.http_status <= 599:
        message = f"{abort.http_status} (expected 200 to 599)"
        _refuse(report, f"{where}.httpStatus", "Invalid", message)
    if abort.grpc_status is not None and not 0 <= abort.grpc_status <= 16:
        _refuse(report, f"{where}.grpcStatus", "Invalid", f"{abort.grpc_status} (expected 0 to 16)")
    return ir.Fault(
        delay=delay,
        delay_share=share,
        status=abort.http_status or 0,
        grpc_status=abort.grpc_status,
        abort_share=_read_share(abort.percentage, report, f"{where}.percentage"),
    )


def _read_share(percent: float, report: Report, path: str) -> int:
    if not 0 <= percent <= 100:
        _refuse(report, path, "Invalid", f"{percent:g} (expected 0 to 100)")
        return 0
    return round(percent * _MILLION / 100)


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
