"""Reason: one line of docs/reference/statuses.md: a type, status and reason that a condition may have, and what that means.

In: nothing. Out: the Struct. Must never: decide anything.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Reason"]


class Reason(msgspec.Struct, frozen=True):
    """One line of the page."""

    type: str  # of the condition
    status: Literal["True", "False"]
    reason: str
    meaning: str
    ours: bool = False  # the Gateway API has no such word
