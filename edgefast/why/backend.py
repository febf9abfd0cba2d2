"""How backends are treated for a rule, in words: what is left out because it fails, which repeats there may be.

In: a rule's traffic units in their order: overrides, the highest first, then the most specific one. Out: what is in force, whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from edgefast import ir

__all__ = ["COUNTED", "BackendSetting", "describe_backend", "describe_units", "find_backend"]

#: Counts of ir.Traffic in words.
COUNTED = {
    "max_connections": "connections",
    "max_pending": "waiting requests",
    "max_requests": "parallel requests",
    "max_retries": "repeats",
}


class BackendSetting(msgspec.Struct, frozen=True):
    """One leaf that is no number."""

    field: str  # of ir.Traffic
    value: ir.OutlierDetection | ir.RetryBudget
    unit: str  # whose it is


def find_backend(units: Sequence[ir.PolicyUnit]) -> Iterator[BackendSetting]:
    """Give what is in force."""
    for field in ("outlier", "retry_budget"):
        for unit in units:
            found = getattr(unit.traffic, field) if unit.traffic is not None else None
            if found is not None:
                yield BackendSetting(field, found, unit.name)
                break


def describe_units(units: Sequence[ir.PolicyUnit]) -> tuple[str, ...]:
    """Return what is in force, each with whose it is."""
    return tuple(f"{one.unit}: {describe_backend(one.value)}" for one in find_backend(units))


def describe_backend(one: ir.OutlierDetection | ir.RetryBudget) -> str:
    """Return what it does."""
    if isinstance(one, ir.RetryBudget):
        share = f"{one.numerator * 100 / one.denominator:g} percent"
        return f"{share} of a backend's requests may be repeats, {one.least} at least"
    also = " or failed connections" if one.local is None else ""
    rows = [
        f"{count} {what}"
        for count, what in (
            (one.local or 0, "failed connections"),
            (one.gateway, f"answers of 502 to 504{also}"),
            (one.server, f"answers of 5xx{also}"),
        )
        if count
    ]
    if not rows:
        return "no endpoint is left out"
    most = f"{one.percent} percent" + (", one at least" if one.always_one else "")
    return f"{' or '.join(rows)} in a row leave an endpoint out for {one.base} ms, {most} of them at most"
