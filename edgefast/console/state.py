"""State: the data from which one answer is computed.

In: filled by the console.
Out: read in threads that compute answers.
Must never: be changed.
"""

from __future__ import annotations

import msgspec

from edgefast.console.index import Index
from edgefast.console.live_metrics import Window
from edgefast.console.problem_index import ProblemIndex
from edgefast.console.source import Table


class State(msgspec.Struct, frozen=True):
    """One fleet at one moment."""

    fleet: str
    table: Table
    index: Index
    marks: ProblemIndex
    numbers: Window
