"""Overview: the number of objects of each kind, and the busiest ones now.

In: an index, a state.
Out: counts, a few rows.
Must never: do more work than one step per listener and active rule.
"""

from __future__ import annotations

from edgefast.console.index import Index
from edgefast.console.rows import Row, make_row
from edgefast.console.state import State

_BUSIEST = 12


def count_all(index: Index) -> dict[str, int]:
    """Return counts by what is counted, in the order of the page."""
    gateways = index.root.children
    return {
        "gateways": len(gateways),
        "listeners": sum(len(one.children) for one in gateways),
        "hosts": index.hosts,
        "routes": len(index.routes),
        "rules": sum(one.rules for one in gateways),
        "matches": index.entries,
        "backends": len(index.clusters),
    }


def list_busiest(state: State) -> list[Row]:
    """Return the rules with the most requests of the last seconds."""
    nodes = (state.index.by_label.get(one) for one in state.numbers.busiest(_BUSIEST))
    return [make_row(state, node) for node in nodes if node is not None]
