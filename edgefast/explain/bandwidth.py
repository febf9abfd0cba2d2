"""Bandwidth: the effective bandwidth limit of a rule, as text.

In: a rule's traffic units in their order: overrides, the highest first, then the most specific one.
Out: the effective limit and its policy.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgefast import ir
from edgefast.explain.traffic import find_first

__all__ = ["describe_bandwidth", "find_bandwidth"]

_UNITS = {1000: "second", 60_000: "minute", 3_600_000: "hour"}


def find_bandwidth(units: Sequence[ir.PolicyUnit]) -> tuple[ir.Bandwidth, str] | None:
    """Return the limit that applies, and the name of its policy."""
    return find_first(units, lambda one: one.bandwidth)


def describe_bandwidth(one: ir.Bandwidth) -> str:
    """Return the text of a limit."""
    after = f" after the first {one.unlimited} bytes" if one.unlimited else ""
    return f"each response has at most {one.amount} bytes per {_UNITS[one.period]}{after}"
