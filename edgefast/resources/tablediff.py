"""Table difference: what two tables, of which one was made from the other, do not share.

In: two dicts. Out: the entries of each between their common beginning and their common end, by identity of keys and values.
A copy of a dict keeps its order, so for a few changes among very many entries these are few, and finding them is a walk
at the speed of C. Must never: leave out an entry that differs; what it gives may hold some that do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress, count, islice
from operator import is_not
from typing import Any, TypeVar, cast

_K = TypeVar("_K")
_V = TypeVar("_V")


def find_unlike(old: Mapping[_K, _V], new: Mapping[_K, _V]) -> tuple[dict[_K, _V], dict[_K, _V]]:
    """Return the entries of `old` and of `new` that may differ, in order."""
    if old is new:
        return {}, {}
    before, after = cast(dict[_K, _V], old), cast(dict[_K, _V], new)
    most = min(len(before), len(after))
    start = min(
        _count_same(before, after, most), _count_same(before.values(), after.values(), most)
    )
    most -= start
    end = min(
        _count_same(reversed(before), reversed(after), most),
        _count_same(reversed(before.values()), reversed(after.values()), most),
    )
    return (
        dict(islice(before.items(), start, len(before) - end)),
        dict(islice(after.items(), start, len(after) - end)),
    )


def _count_same(one: Iterable[Any], other: Iterable[Any], most: int) -> int:
    return min(next(compress(count(), map(is_not, one, other)), most), most)
