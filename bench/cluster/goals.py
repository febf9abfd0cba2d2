"""The figures that the control plane is held to; judged and printed as those of the data plane are (bench/goals.py).

In: the outcomes of one run. Out: a line for each goal. Must never fail the run: on a shared machine a miss is a reason to look.
"""

from collections.abc import Callable
from statistics import mean, median

from bench.cluster.cost import Cost
from bench.cluster.propagation import Spread
from bench.goals import Goal, Values, judge

#: p50 with the most routes / with the fewest; above it the time grows with the number of routes, below it is noise.
_FLAT = 1.15


def _value(row: str, name: str) -> Callable[[Values], float]:
    return lambda values: values[row][name]


_GOALS = (
    Goal("propagation", "mean ms", 15, _value("propagation", "mean")),
    Goal("propagation", "p50 of the last part / of the first", _FLAT, _value("propagation", "growth")),
    Goal("propagation", "wrong answers", 0, _value("propagation", "wrong")),
    Goal("controller", "memory MiB", 250, _value("controller", "memory")),
    Goal("controller", "CPU at rest, % of one", 1, _value("controller", "cpu")),
)  # fmt: skip


def judge_all(spread: Spread, cost: Cost | None) -> list[str]:
    """Return one line for each goal."""
    parts = [part for _, part in spread.parts()]
    values: Values = {
        "propagation": {
            "mean": mean(spread.taken),
            "growth": median(parts[-1]) / median(parts[0]),
            "wrong": len(spread.wrong),
        }
    }
    if cost is not None:
        values["controller"] = {"memory": cost.memory, "cpu": cost.cpu}
    return [judge(goal, values) for goal in _GOALS]
