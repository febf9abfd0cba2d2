"""Closed: what is noted in an object that only stands for one with a mistake.

In: what could be read of the object. Out: why nothing of it is served, and which of its matches take more than was written,
because a part of them cannot be read.
Must never: be set by a document.
"""

from __future__ import annotations

import msgspec

__all__ = ["Closed"]


class Closed(msgspec.Struct, frozen=True, gc=False):
    """See the module's text."""

    path: str  # of the first mistake
    reason: str  # its reason and what is said of it
    widened: frozenset[tuple[int, int]] = frozenset()  # places in spec.rules and in their matches
