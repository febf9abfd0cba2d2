"""Fields: reads a plain document field by field, so that unread fields are left over.

In: the `spec` of a document. Out: values by path, and the paths of the values that remain.
Must never: change the document that it was given.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from edgefast.api.loaded import Path

__all__ = ["Fields", "is_parent", "pair_paths", "put_field"]

#: Fields of one object that are named.
_MOST = 64
#: Levels below `spec` that are looked into; no kind has as many.
_DEEPEST = 8


class Fields:
    """The fields of a plain mapping; `take` removes what it returns."""

    def __init__(self, value: object) -> None:
        self.rest: dict[str, Any] = copy.deepcopy(value) if isinstance(value, dict) else {}
        #: Objects that lost their last field to `take`, by id; an object that was empty is a setting.
        self._emptied: dict[int, dict[str, Any]] = {}

    def take(self, path: str | tuple[Any, ...]) -> Any:
        """Return the value at "http.idleTimeout" and remove it; None if it is absent or below anything but an object.

        A tuple has the keys as `left` gives them; a key may have a dot.
        """
        names = path.split(".") if isinstance(path, str) else path
        holder: Any = self.rest
        for name in names[:-1]:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or names[-1] not in holder:
            return None
        value = holder.pop(names[-1])
        if not holder:
            self._emptied[id(holder)] = holder
        return value

    def left(self) -> Iterator[tuple[Any, ...]]:
        """Give the paths of the remaining values and empty objects, some of very many."""
        found = self._leaves(self.rest, (), 0)
        yield from (path for _, path in zip(range(_MOST), found, strict=False))

    def is_empty(self, path: tuple[Any, ...]) -> bool:
        """Tell whether the value at a path is an object without fields."""
        value: Any = self.rest
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return isinstance(value, dict) and not value

    def _leaves(
        self, value: object, path: tuple[Any, ...], depth: int
    ) -> Iterator[tuple[Any, ...]]:
        if isinstance(value, dict) and depth < _DEEPEST and (value or not path):
            for name, below in value.items():
                yield from self._leaves(below, (*path, name), depth + 1)
        elif value is not None and id(value) not in self._emptied:
            yield path


def is_parent(path: list[str], rows: Collection[str]) -> bool:
    """Tell whether an object has a field among rows such as "http.idleTimeout", and is no row itself."""
    name = ".".join(path)
    return name not in rows and any(one.startswith(f"{name}.") for one in rows)


def pair_paths(rows: Mapping[str, str]) -> tuple[tuple[Path, Path], ...]:
    """Return (our path, their path) below the document for rows of their field and ours."""
    return tuple(
        (("spec", *ours.split(".")), ("spec", *theirs.split("."))) for theirs, ours in rows.items()
    )


def put_field(target: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at "http.idleTimeout", with the objects above it."""
    *above, last = path.split(".")
    for name in above:
        target = target.setdefault(name, {})
    target[last] = value
