"""Intern: keeps one copy of values that many routes have in common, such as a status without problems.

In: a new immutable value. Out: an equal one. Ten thousand routes with one parent and one path share
one status, one list of listeners and one match.
Must never: keep more than KEPT values, or affect anything but memory.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

__all__ = ["KEPT", "intern"]

#: Values that are remembered; those that nobody has asked for go first.
KEPT = 1024

_T = TypeVar("_T")


def _give(value: _T) -> _T:
    """Return a value that is equal, the same for all who ask."""
    return value


# Asked for some times per route: no function of Python stands before the cache.
if TYPE_CHECKING:
    intern = _give
else:
    intern = lru_cache(maxsize=KEPT)(_give)
