"""Backend: rules about circuitBreaker and healthCheck of a BackendTrafficPolicy, each with its CEL twin for the CRD.

In: parts of the kind. Out: violations; `cel` is the same rule for an API server.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.circuit_breaker import RetryBudget
from edgefast.api.edge.health_check import PassiveHealthCheck
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

#: Milliseconds that an endpoint is out the first time, and between two looks, at most.
MAX_EJECTION = 3_600_000


@BOOK.on(
    RetryBudget,
    "percent",
    cel="self.percent.numerator <= self.percent.denominator",
    message="percent must be at most 1",
)
def check_budget(one: RetryBudget) -> Iterable[Violation]:
    """A share is one at most."""
    if one.percent.numerator <= one.percent.denominator:
        return ()
    message = f"{one.percent.numerator} (at most denominator, {one.percent.denominator})"
    return (Violation(("percent", "numerator"), "Invalid", message),)


@BOOK.on(
    PassiveHealthCheck,
    "base_ejection_time",
    cel="!has(self.baseEjectionTime) || "
    "duration(self.baseEjectionTime) > duration('0s') && duration(self.baseEjectionTime) <= duration('1h')",
    message="baseEjectionTime must be more than 0s and at most 1h",
)
def check_ejection_time(one: PassiveHealthCheck) -> Iterable[Violation]:
    """Who is out comes back."""
    return _check_time(one.base_ejection_time, "baseEjectionTime")


@BOOK.on(
    PassiveHealthCheck,
    "interval",
    cel="!has(self.interval) || duration(self.interval) > duration('0s') && duration(self.interval) <= duration('1h')",
    message="interval must be more than 0s and at most 1h",
)
def check_interval(one: PassiveHealthCheck) -> Iterable[Violation]:
    """Somebody looks again."""
    return () if one.interval is None else _check_time(one.interval, "interval")


def _check_time(given: str, name: str) -> Iterable[Violation]:
    if 0 < parse_duration(given) <= MAX_EJECTION:
        return ()
    return (Violation((name,), "Invalid", f'"{given}" (expected more than 0s, at most 1h)'),)
