"""The figures that edgefast is held to, each read from the medians of a table.

In: tables of one run. Out: a line for every goal of a row that was measured: "met", "MISSED by", or
why it is not judged. What must be met is told from what is reached for. Must never stop the bench,
and must never be a test: on a shared machine a miss is a reason to look, not a failure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.table import Table

Values = dict[str, dict[str, float]]

#: Rows whose figure is CPU per request; the floor has no TLS and no log.
WITH_FLOOR = ("get", "connect", "post", "download")
WITHOUT_FLOOR = ("get-logs", "tls", "handshake")
SLOPES = ("hosts", "paths")


@dataclass(frozen=True)
class Goal:
    """`read` gives the figure, or raises KeyError where the run lacks a part of it."""

    row: str
    what: str
    limit: float
    read: Callable[[Values], float]
    at_most: bool = True
    must: bool = True  # else it is reached for


def _cpu_ratio(other: str) -> Callable[[Values], float]:
    return lambda values: values["edgefast"][other]


def _metric(name: str) -> Callable[[Values], float]:
    return lambda values: values["edgefast"][name]


def _share(routes: int) -> Callable[[Values], float]:
    return lambda values: values[f"edgefast {routes}"]["share"]


def _added(quantile: str, other: str) -> Callable[[Values], float]:
    """What edgefast adds to going direct, as a multiple of what another proxy adds."""

    def read(values: Values) -> float:
        direct = values["direct"][quantile]
        theirs = values[other][quantile] - direct
        if theirs <= 0:
            raise KeyError(f"{quantile} of {other} above direct")
        return (values["edgefast"][quantile] - direct) / theirs

    return read


def list_goals() -> Iterator[Goal]:
    """All goals, by row."""
    for row in (*WITH_FLOOR, *WITHOUT_FLOOR):
        if row in WITH_FLOOR:
            yield Goal(row, "CPU per request / floor", 1.3, _cpu_ratio("floor"))
            yield Goal(row, "CPU per request / floor", 1.1, _cpu_ratio("floor"), must=False)
        yield Goal(row, "CPU per request / nginx", 1.0, _cpu_ratio("nginx"))
        yield Goal(row, "CPU per request / Envoy", 0.4, _cpu_ratio("envoy"))
        yield Goal(row, "CPU per request / haproxy", 1.0, _cpu_ratio("haproxy"), must=False)
    for quantile in ("p50", "p99", "p999"):
        what = f"{quantile} added to direct / nginx's"
        yield Goal("latency", what, 1.0, _added(quantile, "nginx"), must=False)
    for row in SLOPES:
        for routes in (10_000, 100_000):
            what = f"CPU per request with 1 route / with {routes:,}"
            yield Goal(row, what, 0.95, _share(routes), at_most=False)
    yield Goal("syscalls", "system calls per keep-alive request", 4.5, _metric("calls"))
    yield Goal("memory", "bytes per route and backend, workers", 8_000, _metric("bytes"))
    yield Goal("idle", "bytes per idle connection", 4_000, _metric("bytes"))
    yield Goal("start", "ms from exec to the last of 1,000 routes", 1_000, _metric("start_ms"))
    yield Goal("start", "ms from a changed file to the added route", 100, _metric("reload_ms"))


def judge_goals(tables: Sequence[Table]) -> list[str]:
    """One line per goal whose row was measured."""
    by_name = {table.name: table.values for table in tables}
    return [_judge(goal, by_name[goal.row]) for goal in list_goals() if goal.row in by_name]


def _judge(goal: Goal, values: Values) -> str:
    what = f"{goal.row}: {goal.what}" + ("" if goal.must else " (reach for)")
    try:
        value = goal.read(values)
    except KeyError as missing:
        return f"{what}: not judged, this run has no {missing.args[0]}"
    met = value <= goal.limit if goal.at_most else value >= goal.limit
    away = f"{abs(value / goal.limit - 1):.0%}"
    verdict = "met" if met else f"MISSED by {away}" if goal.must else f"{away} away"
    return f"{what}: {value:.3g} ({'<=' if goal.at_most else '>='} {goal.limit:g}): {verdict}"
