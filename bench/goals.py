"""The figures that edgefast is held to, each read from the medians of a table.

In: tables of one run. Out: lines "met" or "missed by". Must never stop the bench, and must never
be a test: on a shared machine a miss is a reason to look, not a failure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.table import Table

Values = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Goal:
    """`read` gives the figure, or raises KeyError where the run lacks a part of it."""

    row: str
    what: str
    limit: float
    at_most: bool
    read: Callable[[Values], float]


def _cpu_ratio(other: str) -> Callable[[Values], float]:
    return lambda values: values["edgefast"][other]


GOALS = (
    Goal("get", "CPU per request / floor", 1.3, True, _cpu_ratio("floor")),
    Goal("get", "CPU per request / nginx", 1.0, True, _cpu_ratio("nginx")),
    Goal("get", "CPU per request / haproxy (reach for)", 1.0, True, _cpu_ratio("haproxy")),
    Goal("get", "CPU per request / Envoy", 0.4, True, _cpu_ratio("envoy")),
    Goal(
        "hosts",
        "requests/s at 100k routes on 100k hosts / at 1 route",
        0.95,
        False,
        lambda values: values["edgefast 100000"]["share"],
    ),
    Goal(
        "paths",
        "requests/s at 100k routes on one host / at 1 route",
        0.95,
        False,
        lambda values: values["edgefast 100000"]["share"],
    ),
    Goal(
        "syscalls",
        "system calls per keep-alive request",
        4.5,
        True,
        lambda values: values["edgefast"]["calls"],
    ),
    Goal(
        "memory",
        "bytes per route and backend, workers",
        8_000,
        True,
        lambda values: values["edgefast"]["bytes"],
    ),
    Goal(
        "idle",
        "bytes per idle connection",
        4_000,
        True,
        lambda values: values["edgefast"]["bytes"],
    ),
)


def judge_goals(tables: Sequence[Table]) -> list[str]:
    """One line per goal whose row was measured."""
    by_name = {table.name: table.values for table in tables}
    lines = []
    for goal in GOALS:
        if goal.row not in by_name:
            continue
        try:
            value = goal.read(by_name[goal.row])
        except KeyError as missing:
            lines.append(f"{goal.what}: not judged, this run has no {missing.args[0]}")
            continue
        met = value <= goal.limit if goal.at_most else value >= goal.limit
        sign = "<=" if goal.at_most else ">="
        verdict = "met" if met else f"MISSED by {abs(value / goal.limit - 1):.0%}"
        lines.append(f"{goal.what}: {value:.3g} ({sign} {goal.limit:g}): {verdict}")
    return lines
