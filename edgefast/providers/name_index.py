"""Name index: selects the object for each name when several files define it.

In: the contents of each file, in the order of files.
Out: objects by name. The first valid object has priority, then a kept earlier version, then an
object that only makes the name fail closed. Entries with separate names ("name?2") make all other
objects of the same name fail closed.
Must never: serve a second object of a name, or drop one that does not fail closed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from edgefast.api.decode.duplicate import (
    close_duplicate,
    policy_of_duplicate,
    rename_duplicate,
    rename_policy,
)
from edgefast.api.loaded import Loaded
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.providers.stale import Kept, Key

__all__ = ["Contents", "Named", "index_files", "key_of"]


class Contents(Protocol):
    """What there is of a file."""

    @property
    def sound(self) -> tuple[tuple[Key, Loaded], ...]:
        """Objects that are in it."""
        ...

    @property
    def kept(self) -> Kept:
        """Objects that it had."""
        ...

    @property
    def closed(self) -> tuple[tuple[Key, Loaded], ...]:
        """What keeps places of objects with mistakes closed."""
        ...

    @property
    def policies(self) -> tuple[ForeignPolicy, ...]:
        """Policies of other projects, and BackendTLSPolicies that have a mistake."""
        ...


class Named(NamedTuple):
    """All files."""

    objects: dict[Key, Loaded]
    served: int  # objects of these that do not only keep a place closed
    doubled: bool  # a sound object has the name of another one
    policies: tuple[ForeignPolicy, ...]


def index_files(files: Collection[Contents]) -> Named:
    """Return the objects of files by name."""
    index: dict[Key, Loaded] = {}
    sound = 0
    for file in files:
        items = file.sound
        sound += len(items)
        for key, item in items:
            index.setdefault(key, item)
    doubled = sound != len(index)
    # Most files have nothing but sound objects, and there may be ten thousand.
    others = [one for one in files if one.policies or one.kept.objects or one.closed]
    # What is only kept yields to a sound object of its name in any other file.
    for file in others:
        for key, item in file.kept.objects:
            index.setdefault(key, item)
    served = len(index)
    numbers: dict[Key, int] = {}
    # An object with an error and without a good version closes what it covers.
    for file in others:
        closed = file.closed
        kept = set(file.kept.keys) if closed else set()
        for key, item in closed:
            if key not in index:
                index[key] = item
            elif key in kept:
                kept.discard(key)  # one good version stands for one of them
            else:  # another object has its name
                _add(index, rename_duplicate(item, _next(numbers, key)))
    # So does an object whose name another one has; a BackendTLSPolicy keeps its Services from plain text.
    policies: list[ForeignPolicy] = []
    for file in files if doubled else others:
        left = set(file.kept.keys) if file.policies else set()
        for one in file.policies:
            key = (one.ref.kind, one.ref.namespace, one.ref.name)
            doubled = key in index and key not in left
            left.discard(key)  # one good version stands for one of them
            policies.append(rename_policy(one, _next(numbers, key)) if doubled else one)
        for key, item in file.sound if doubled else ():
            if (first := index[key]) is not item:
                number = _next(numbers, key)
                if other := close_duplicate(item, first, number):
                    _add(index, other)
                if policy := policy_of_duplicate(item, number):
                    policies.append(policy)
    return Named(index, served, doubled, tuple(policies))


def key_of(one: Loaded) -> Key:
    """Return the name of an object."""
    meta = one.obj.metadata
    return (type(one.obj).__name__, meta.namespace, meta.name)


def _add(index: dict[Key, Loaded], item: Loaded) -> None:
    index.setdefault(key_of(item), item)


def _next(numbers: dict[Key, int], key: Key) -> int:
    numbers[key] = numbers.get(key, 1) + 1
    return numbers[key]
