"""State: all that one answer is made of.

In: filled by the console. Out: read by what makes answers, in threads. Must never: be changed.
"""

from __future__ import annotations

import msgspec

from edgefast.console.index import Index
from edgefast.console.marks import Marks
from edgefast.console.numbers import Window
from edgefast.console.source import Table


class State(msgspec.Struct, frozen=True):
    """One fleet at one moment."""

    fleet: str
    table: Table
    index: Index
    marks: Marks
    numbers: Window
