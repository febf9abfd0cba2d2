"""Fail closed: the record in a placeholder of an object with a mistake.

In: the readable part of the object.
Out: why nothing of it is served, and which of its matches are wider than written, because a part of
them cannot be read.
Must never: be set by a document.
"""

from __future__ import annotations

import msgspec

__all__ = ["Closed", "is_closed"]


class Closed(msgspec.Struct, frozen=True, gc=False):
    """Why an object with an error is not served, and which of its matches are wider than written."""

    path: str  # of the first mistake
    reason: str  # its reason and what is said of it
    #: Of matches: places in spec.rules and in their matches that take more than was written.
    widened: frozenset[tuple[int, int]] = frozenset()
    lost: bool = False  # a part of its place cannot be told
    cause: str = ""  # how long it stands so, in words; "": while no good version is in use

    @property
    def since(self) -> str:
        """How long it stands so, in words; {} is the kind."""
        return self.cause or "while no good version of the {} is in use"

    @property
    def said(self) -> str:
        """The first mistake, in words."""
        return f"{self.path}: {self.reason}" if self.path else self.reason


def is_closed(obj: object) -> bool:
    """Tell whether an object only keeps the place of one with a mistake closed."""
    return getattr(obj, "closed", None) is not None
