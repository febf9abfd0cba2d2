"""The figures that the control plane is held to; judged and printed as those of the data plane are (bench/goals.py).

In: the outcomes of one run. Out: a line for each goal. Must never fail the run: on a shared machine a miss is a reason to look.
"""

from collections.abc import Callable
from statistics import mean, median, quantiles

from bench.cluster.cost import Cost
from bench.cluster.propagation import Spread
from bench.goals import Goal, Values, judge

#: p50 with the most routes / with the fewest; above it the time grows with the number of routes, below it is noise.
_FLAT = 1.15


def _value(row: str, name: str) -> Callable[[Values], float]:
    return lambda values: values[row][name]


_GOALS = (
    Goal("propagation", "mean ms", 4, _value("propagation", "mean")),
    Goal("propagation", "p99 ms", 10, _value("propagation", "p99")),
    Goal("propagation", "p50 of the last part / of the first", _FLAT, _value("propagation", "growth")),
    Goal("propagation", "controller's CPU, last part / first", _FLAT, _value("propagation", "cpu growth")),
    Goal("propagation", "wrong answers", 0, _value("propagation", "wrong")),
    Goal("controller", "memory MiB", 120, _value("controller", "memory")),
    Goal("controller", "CPU at rest, % of one", 1, _value("controller", "cpu")),
)  # fmt: skip


def judge_all(spread: Spread, cost: Cost | None) -> list[str]:
    """Return one line for each goal."""
    first, *_, last = spread.parts()
    values: Values = {
        "propagation": {
            "mean": mean(spread.taken),
            "p99": quantiles(spread.taken, n=100)[-1],
            "growth": median(last.taken) / median(first.taken),
            "cpu growth": last.cpu["controller"] / first.cpu["controller"],
            "wrong": len(spread.wrong),
        }
    }
    if cost is not None:
        values["controller"] = {"memory": cost.memory, "cpu": cost.cpu}
    return [judge(goal, values) for goal in _GOALS]
