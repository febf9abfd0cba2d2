"""Family: the definition of one metric, shared by the exposition, the page, dashboards and alerts.

In: nothing.
Out: `Family`, and its two comment lines of text format 0.0.4.
Conventions (prometheus.io/docs/practices/naming): one prefix, base units at the end of the name,
counters end in `_total`; promtool lints them in tests/monitoring.
Must never: have a label with values from clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

__all__ = ["PREFIX", "Family", "by_name", "count", "now"]

PREFIX = "edgefast_"

Kind = Literal["counter", "gauge", "histogram"]
#: "timestamp" are seconds since 1970, UTC.
Unit = Literal["", "bytes", "seconds", "timestamp"]


class Family(msgspec.Struct, frozen=True):
    """One metric; `name` with prefix and `_total`, as samples have it (of a histogram: without `_bucket`)."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    unit: Unit = ""
    cell: str = ""  # of a proxy: the cell in shared memory that it shows (edgefast/core/cells.py)
    when: str = ""  # it is there only then; "": always

    def heading(self) -> str:
        """Return the HELP and TYPE lines."""
        text = self.help.replace("\\", "\\\\").replace("\n", "\\n")
        return f"# HELP {self.name} {text}\n# TYPE {self.name} {self.kind}\n"

    @property
    def short(self) -> str:
        """The name without the prefix: what code calls it."""
        return self.name.removeprefix(PREFIX)


def count(name: str, text: str, cell: str = "", unit: Unit = "", when: str = "") -> Family:
    """Return a counter; `name` is without prefix and `_total`."""
    return Family(f"{PREFIX}{name}_total", "counter", text, unit=unit, cell=cell, when=when)


def now(name: str, text: str, cell: str = "") -> Family:
    """Return a gauge of how many there are; its cell is called as it is, unless another one is given."""
    return Family(PREFIX + name, "gauge", text, cell=cell or name)


def by_name(families: Iterable[Family]) -> dict[str, Family]:
    """Return families by their name without the prefix; ValueError for one that stands twice."""
    found: dict[str, Family] = {}
    for one in families:
        if one.short in found:
            raise ValueError(f"{one.name} is defined twice")
        found[one.short] = one
    return found
