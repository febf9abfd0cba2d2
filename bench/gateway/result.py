"""What a test of one gateway gives: figures with units, and series to plot.

In: numbers. Out: JSON, from which the report is made. Must never: hold a figure without its unit in its name.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

Point = tuple[float, float]


@dataclass
class Result:
    """One test of one gateway."""

    test: str
    figures: dict[str, float] = field(default_factory=dict)  # "memory of the proxy, MiB" -> 41.2
    series: dict[str, list[Point]] = field(default_factory=dict)
    #: What went wrong; a test that failed has no figures.
    failed: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def round_figures(figures: dict[str, float]) -> dict[str, float]:
    """Return figures with four significant digits: more of them are noise."""
    return {name: float(f"{value:.4g}") for name, value in figures.items()}
