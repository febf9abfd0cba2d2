"""Limits: the active rate limits, with the numbers of allowed and refused requests in the last seconds.

In: a state.
Out: rows. A limit of several hostnames is one row.
Must never: show values that clients sent; GET /limits shows those.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgefast import ir
from edgefast.console.detail import write_limit
from edgefast.console.rows import Page, cut_page
from edgefast.console.state import State
from edgefast.table.row_label import label_limit


class LimitLine(msgspec.Struct, frozen=True):
    """One rule of a RateLimitFilter, as one rule of a route uses it."""

    name: str
    route: str
    rule: str
    said: str
    shadow: bool
    node: str
    passed: float | None  # per second
    refused: float | None
    failed: float | None


def list_limits(state: State, words: str, offset: int, limit: int) -> Page:
    """Return limits with the words in their names or routes; those that refuse most come first."""
    wanted = words.lower().split()
    found = [
        one
        for one in _lines(state)
        if all(word in f"{one.name}\n{one.route}\n{one.said}".lower() for word in wanted)
    ]
    found.sort(key=lambda one: -((one.refused or 0.0) + (one.failed or 0.0)))
    return cut_page(found, offset, limit, lambda one: one)


def _lines(state: State) -> Iterator[LimitLine]:
    seen: set[tuple[str, int, str]] = set()
    for node in state.index.limited:
        rule = node.subject
        if not isinstance(rule, ir.Rule):
            continue
        for one in rule.rate_limits:
            key = (rule.route, rule.index, one.name)
            if key in seen:
                continue
            seen.add(key)
            rates = state.numbers.limit_rates(label_limit(rule.route, one.name))
            passed, over, shadow, failed = rates or (None, None, None, None)
            yield LimitLine(
                name=one.name,
                route=rule.route,
                rule=rule.name or str(rule.index),
                said=write_limit(one),
                shadow=one.shadow,
                node=node.id,
                passed=passed,
                refused=shadow if one.shadow else over,
                failed=failed,
            )
