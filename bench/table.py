"""A result table: what a measurement hands to the report, and the words for numbers in it.

In: labels and cells. Out: markdown lines. Must never hold how a number was made: notes say it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Table:
    """One row set of the bench; `values[label][metric]` are the medians that goals are read from."""

    name: str
    title: str
    header: list[str]
    lines: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    noisy: bool = False  # measured beside a neighbour that empties caches

    def add_missing(self, label: str, reason: str) -> None:
        """A proxy that took no part: its line says why."""
        text = reason.replace("|", "/").replace("\n", " ")
        self.lines.append([label, f"left out: {text}", *[""] * (len(self.header) - 2)])

    def to_markdown(self) -> str:
        """Heading, table, notes."""
        where = ", beside a neighbour" if self.noisy else ""
        parts = [f"## {self.name}: {self.title}{where}", ""]
        parts.append("| " + " | ".join(self.header) + " |")
        parts.append("|" + "---|" * len(self.header))
        parts += ["| " + " | ".join(line) + " |" for line in self.lines]
        parts += ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join(parts) + "\n"


def show_spread(values: Sequence[float], digits: int = 1) -> str:
    """Median with lowest and highest: `14.2 (13.9-15.0)`."""
    low, high = min(values), max(values)
    return f"{median(values):.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def show_bytes(count: float) -> str:
    """Bytes in B, kB or MB (powers of 1000)."""
    if abs(count) >= 1e6:
        return f"{count / 1e6:.1f} MB"
    return f"{count / 1e3:.2f} kB" if abs(count) >= 1e3 else f"{count:.0f} B"
