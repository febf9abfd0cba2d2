"""Console: a read-only web page about one process: configuration, live metrics, problems, explanations, changes.

In: a `Source` of a proxy or a controller.
Out: routes for an HttpServer: the page's files and bounded JSON. A process imports `LazyConsole`;
the first request for data imports `Console`.
Must never: change anything, request anything from other hosts, or block the loop: work runs in
threads.
"""

from typing import TYPE_CHECKING

from edgefast.console.change_history import ChangeRecord, HistoryBudget
from edgefast.console.lazy import LazyConsole
from edgefast.console.live_metrics import Counters, make_row
from edgefast.console.source import Member, Source, Table

if TYPE_CHECKING:
    from edgefast.console.console import Console

__all__ = [
    "Console",
    "Counters",
    "LazyConsole",
    "Member",
    "ChangeRecord",
    "HistoryBudget",
    "Source",
    "Table",
    "make_row",
]


def __getattr__(name: str) -> object:
    """Import `Console` at its first use (PEP 562)."""
    if name != "Console":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from edgefast.console.console import Console

    globals()[name] = Console
    return Console
