"""Fields: reads a plain document field by field, so that unread fields are left over.

In: the `spec` of a document. Out: values by path, and the paths of the values that remain.
Must never: change the document that it was given.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from edgefast.api.loaded import Path

__all__ = ["Fields", "put_field"]

#: Fields of one object that are named.
_MOST = 64
#: Levels below `spec` that are looked into; no kind has as many.
_DEEPEST = 8


class Fields:
    """The fields of a plain mapping; `take` removes what it returns."""

    def __init__(self, value: object) -> None:
        self.rest: dict[str, Any] = copy.deepcopy(value) if isinstance(value, dict) else {}

    def take(self, path: str) -> Any:
        """Return the value at "http.idleTimeout" and remove it; None if it is absent or below anything but an object."""
        names = path.split(".")
        holder: Any = self.rest
        for name in names[:-1]:
            holder = holder.get(name) if isinstance(holder, dict) else None
        return holder.pop(names[-1], None) if isinstance(holder, dict) else None

    def left(self) -> Iterator[Path]:
        """Give the paths of the remaining values, some of very many."""
        found = _leaves(self.rest, (), 0)
        yield from (path for _, path in zip(range(_MOST), found, strict=False))


def put_field(target: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at "http.idleTimeout", with the objects above it."""
    *above, last = path.split(".")
    for name in above:
        target = target.setdefault(name, {})
    target[last] = value


def _leaves(value: object, path: Path, depth: int) -> Iterator[Path]:
    if isinstance(value, dict) and depth < _DEEPEST:
        for name, below in value.items():
            yield from _leaves(below, (*path, str(name)), depth + 1)
    elif value is not None:
        yield path
