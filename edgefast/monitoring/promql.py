"""PromQL check: compares expressions of dashboards and alerts with the catalogue.

In: a PromQL expression.
Out: the metrics that it reads and the labels that it uses; problems as texts: an unknown metric, a
label that no metric of the expression has, a rate of a gauge. It parses only as much PromQL as that
needs; in the tests, promtool checks the whole expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgefast.monitoring.controller_metrics import CONTROLLER
from edgefast.monitoring.family import PREFIX, Family
from edgefast.monitoring.proxy_metrics import PROXY

__all__ = ["FAMILIES", "TARGET_LABELS", "check_expression", "metrics_of"]

#: All metrics that there are, by whole name.
FAMILIES: dict[str, Family] = {one.name: one for one in (*PROXY.values(), *CONTROLLER.values())}
#: Labels that Prometheus gives every series of a target.
TARGET_LABELS = frozenset({"instance", "job"})

_SELECTOR = re.compile(r"\b([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?\s*(\[[^\]]*\])?")
_OVER_TIME = re.compile(r"\b(rate|increase|irate)\s*\(\s*([a-zA-Z_:][a-zA-Z0-9_:]*)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_MATCHER = re.compile(r"\s*([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)")
_OF_HISTOGRAM = ("_bucket", "_sum", "_count")


def metrics_of(expression: str) -> list[str]:
    """Return the names in an expression that begin with our prefix, as they are written."""
    return [name for name, _ in _selectors(expression)]


def check_expression(expression: str) -> list[str]:
    """Return what is wrong with an expression; an expression without a metric of ours is wrong, too."""
    wrong = []
    labels = set(TARGET_LABELS)
    found = _selectors(expression)
    if not found:
        wrong.append(f"not a metric of edgefast: {expression}")
    for name, matchers in found:
        family = _family_of(name)
        if family is None:
            wrong.append(f"{name} is not exposed")
            continue
        own = {*family.labels, *TARGET_LABELS, *(("le",) if name.endswith("_bucket") else ())}
        labels |= own
        wrong += [
            f"{name} has no label {label}" for label in _labels_in(matchers) if label not in own
        ]
    for names in _GROUPING.findall(expression):
        named = [one.strip() for one in names.split(",") if one.strip()]
        wrong += [f"no metric here has a label {one}" for one in named if one not in labels]
    for function, name in _OVER_TIME.findall(expression):
        family = _family_of(name)
        if family is not None and family.kind == "gauge":
            wrong.append(f"{function}() of the gauge {name}")
    return wrong


def _selectors(expression: str) -> list[tuple[str, str]]:
    plain = re.sub(r'"[^"]*"', '""', expression)
    return [
        (match[1], match[2] or "")
        for match in _SELECTOR.finditer(plain)
        if match[1].startswith(PREFIX)
    ]


def _labels_in(matchers: str) -> Iterator[str]:
    for one in matchers.split(","):
        match = _MATCHER.match(one)
        if match:
            yield match[1]


def _family_of(name: str) -> Family | None:
    """Find the family of a series; a histogram is read by its parts alone, everything else by its name."""
    known = FAMILIES.get(name)
    if known is not None:
        return known if known.kind != "histogram" else None
    for suffix in _OF_HISTOGRAM:
        family = FAMILIES.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if family is not None and family.kind == "histogram":
            return family
    return None
