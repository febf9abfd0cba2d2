"""SortedMap: an immutable mapping in key order; its next version shares all but a few entries with it.

In: keys that can be compared with each other, values. Out: `SortedMap`; `edit` gives a `Draft` that becomes the next one. `find_unlike`
gives what two of them do not share; `values_of` gives the values in order as a sequence. Entries are in chunks (dicts of at most CHUNK)
that versions share by identity. A change among 10,000 entries therefore costs a chunk and a list of chunks, and a comparison costs the
chunks: architecture decision 2. A version knows the few keys that changed since the previous one: the comparison of these two costs just
those.
Must never: change a chunk that a SortedMap holds, or compare values by anything but identity.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from itertools import chain, compress, count
from operator import is_not
from typing import Any, Generic, TypeVar, overload

__all__ = ["EMPTY", "Draft", "SortedMap", "Values", "find_unlike", "values_of"]

#: Entries of a chunk at most: as many as a dict of 64 places takes; a half of them is just what one of 32 takes. Of each change a
#: chunk is copied and put in order, so that larger ones cost every change more than they save those who go through all of them.
CHUNK = 42
_FILL = 21  # entries of a chunk that is cut off a larger one
_LEAST = 8  # entries of a chunk that has neighbours, about
_TOUCHED = 32  # keys that a version remembers at most; looking at more is no cheaper than looking at chunks

_K = TypeVar("_K")
_V = TypeVar("_V")
_D = TypeVar("_D")
_ABSENT: Any = object()


class _Chunked(Generic[_K, _V]):
    """Chunks in order, as they are read: the place of a key's chunk is its place among the first keys."""

    __slots__ = ("_chunks", "_firsts", "_length")

    _chunks: list[dict[_K, _V]]
    _firsts: list[Any]
    _length: int

    def __getitem__(self, key: _K) -> _V:
        return self._chunks[bisect_right(self._firsts, key)][key]

    @overload
    def get(self, key: _K, /) -> _V | None: ...
    @overload
    def get(self, key: _K, default: _V | _D, /) -> _V | _D: ...
    def get(self, key: _K, default: _V | _D | None = None, /) -> _V | _D | None:
        """Return the value of a key, or `default`."""
        return self._chunks[bisect_right(self._firsts, key)].get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._chunks[bisect_right(self._firsts, key)]

    def __len__(self) -> int:
        return self._length


class SortedMap(_Chunked[_K, _V], Mapping[_K, _V]):
    """An immutable mapping, ordered by key, that shares entries with its next version.

    Iterates in the order of its keys.
    """

    __slots__ = ("_before", "_mark", "_touched")

    _mark: object  # this version's; others name it by that, which keeps no version alive
    _before: object  # the mark of the version that this one was made from
    _touched: tuple[_K, ...]  # the only keys in which that one may differ

    def __init__(self, entries: Mapping[_K, _V] | Iterable[tuple[_K, _V]] = ()) -> None:
        given = entries.items() if isinstance(entries, Mapping) else entries
        self._chunks = list(_cut(dict(given))) or [{}]
        self._firsts = _list_firsts(self._chunks)
        self._length = sum(map(len, self._chunks))
        self._mark = object()
        self._before = None
        self._touched = ()

    def __iter__(self) -> Iterator[_K]:
        return chain.from_iterable(self._chunks)

    def __reversed__(self) -> Iterator[_K]:
        return chain.from_iterable(map(reversed, reversed(self._chunks)))

    def __repr__(self) -> str:
        return f"SortedMap({dict(self.items())!r})"

    def items(self) -> ItemsView[_K, _V]:
        """Return the entries, in order."""
        return _Items(self)

    def values(self) -> ValuesView[_V]:
        """Return the values, in the order of their keys."""
        return _ValuesView(self)

    def starting_at(self, key: Any) -> Iterator[_K]:
        """Give the keys that are not below `key`: a key, there or not, or what can be compared with keys."""
        at = bisect_right(self._firsts, key)
        first: list[Any] = list(self._chunks[at])
        yield from first[bisect_left(first, key) :]
        yield from chain.from_iterable(self._chunks[at + 1 :])

    def edit(self) -> Draft[_K, _V]:
        """Return what the next version is made with."""
        return Draft(self)


class _Items(ItemsView[_K, _V]):
    _mapping: SortedMap[_K, _V]

    def __iter__(self) -> Iterator[tuple[_K, _V]]:
        return chain.from_iterable(chunk.items() for chunk in self._mapping._chunks)


class _ValuesView(ValuesView[_V]):
    _mapping: SortedMap[Any, _V]

    def __iter__(self) -> Iterator[_V]:
        return chain.from_iterable(chunk.values() for chunk in self._mapping._chunks)


class Draft(_Chunked[_K, _V]):
    """The next version of a SortedMap while it is made; after `done` it goes on from there."""

    __slots__ = ("_base", "_own", "_touched", "_unsorted")

    def __init__(self, base: SortedMap[_K, _V]) -> None:
        self._begin(base)

    def _begin(self, base: SortedMap[_K, _V]) -> None:
        self._base = base
        self._chunks = base._chunks  # copied at the first change
        self._firsts = base._firsts
        self._length = len(base)
        self._own: set[int] = set()  # places of chunks that are no longer the base's
        self._unsorted: set[int] = set()
        self._touched: set[_K] = set()

    def __setitem__(self, key: _K, value: _V) -> None:
        at = bisect_right(self._firsts, key)
        chunk = self._chunks[at]
        known = chunk.get(key, _ABSENT)
        if known is value:
            return
        if at not in self._own:
            chunk = self._writable(at)
        if known is _ABSENT:
            self._unsorted.add(at)
            self._length += 1
        if len(self._touched) <= _TOUCHED:  # of more nobody asks which
            self._touched.add(key)
        chunk[key] = value

    def __delitem__(self, key: _K) -> None:
        at = bisect_right(self._firsts, key)
        if key not in self._chunks[at]:
            raise KeyError(key)
        self._touched.add(key)
        del self._writable(at)[key]
        self._length -= 1

    def pop(self, key: _K, default: _D) -> _V | _D:
        """Take an entry out; returns its value, or `default` when there is none."""
        at = bisect_right(self._firsts, key)
        if key not in self._chunks[at]:
            return default
        self._touched.add(key)
        self._length -= 1
        return self._writable(at).pop(key)

    def update(self, entries: Mapping[_K, _V]) -> None:
        """Put entries in."""
        for key, value in entries.items():
            self[key] = value

    def _writable(self, at: int) -> dict[_K, _V]:
        if at not in self._own:
            if not self._own:
                self._chunks = self._chunks.copy()
            self._chunks[at] = self._chunks[at].copy()
            self._own.add(at)
        return self._chunks[at]

    def done(self) -> SortedMap[_K, _V]:
        """Return the next version: the base itself when nothing was changed."""
        if not self._own:
            return self._base
        chunks: list[dict[_K, _V]] = []
        # The first key of each chunk; nobody asks for that of the very first one. Those of shared chunks are copied.
        known: list[Any] = [None, *self._firsts]
        firsts: list[Any] = []
        end = 0
        for at in sorted(self._own):
            chunks += self._chunks[end:at]
            firsts += known[end:at]
            end = at + 1
            chunk = self._chunks[at]
            cut: Iterable[dict[_K, _V]] = (chunk,) if chunk else ()
            if len(chunk) < _LEAST and chunks:
                # Small ones join the one before, so that there are never many of them.
                cut = _cut({**chunks.pop(), **chunk})
                firsts.pop()
            elif at in self._unsorted or len(chunk) > CHUNK:
                cut = _cut(chunk)
            for one in cut:
                chunks.append(one)
                firsts.append(next(iter(one)))
        chunks += self._chunks[end:]
        firsts += known[end:]
        made: SortedMap[_K, _V] = SortedMap.__new__(SortedMap)
        made._chunks = chunks or [{}]
        made._firsts = firsts[1:]
        made._length = self._length
        made._mark = object()
        made._before, made._touched = None, ()
        if len(self._touched) <= _TOUCHED:
            made._before = self._base._mark
            made._touched = tuple(self._touched)
        self._begin(made)
        return made


class Values(Sequence[_V]):
    """The values of a SortedMap in the order of its keys; equal to any sequence of equal items."""

    __slots__ = ("map",)

    def __init__(self, source: SortedMap[Any, _V]) -> None:
        self.map = source

    def __len__(self) -> int:
        return len(self.map)

    def __iter__(self) -> Iterator[_V]:
        return chain.from_iterable(chunk.values() for chunk in self.map._chunks)

    @overload
    def __getitem__(self, at: int) -> _V: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[_V]: ...
    def __getitem__(self, at: int | slice) -> _V | Sequence[_V]:
        return tuple(self)[at]

    def __reversed__(self) -> Iterator[_V]:
        return chain.from_iterable(reversed(chunk.values()) for chunk in reversed(self.map._chunks))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Values) and other.map is self.map:
            return True
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(other) == len(self) and all(
            one is two or one == two for one, two in zip(self, other, strict=True)
        )

    def __repr__(self) -> str:
        return repr(tuple(self))


def values_of(map_: SortedMap[Any, _V]) -> Sequence[_V]:
    """Return the values in the order of the keys: Values, or () of an empty map."""
    return Values(map_) if map_ else ()


def find_unlike(old: Mapping[_K, _V], new: Mapping[_K, _V]) -> tuple[dict[_K, _V], dict[_K, _V]]:
    """Return the entries of each that the other does not have with the identical value, in order."""
    if old is new:
        return {}, {}
    if isinstance(old, SortedMap) and isinstance(new, SortedMap):
        if new._before is old._mark:
            touched: list[Any] = list(new._touched)
            touched.sort()
            before, after = _entries_of(old, touched), _entries_of(new, touched)
        else:
            before, after = _unshared(old._chunks, new._chunks)
    else:
        before, after = dict(old.items()), dict(new.items())
    return (
        {key: one for key, one in before.items() if after.get(key, _ABSENT) is not one},
        {key: one for key, one in after.items() if before.get(key, _ABSENT) is not one},
    )


def _entries_of(map_: SortedMap[_K, _V], keys: list[_K]) -> dict[_K, _V]:
    return {key: found for key in keys if (found := map_.get(key, _ABSENT)) is not _ABSENT}


def _unshared(
    old: list[dict[_K, _V]], new: list[dict[_K, _V]]
) -> tuple[dict[_K, _V], dict[_K, _V]]:
    """Return the entries of the chunks that are in one list alone."""
    most = min(len(old), len(new))
    start = _count_same(old, new, most)
    end = min(_count_same(reversed(old), reversed(new), most), most - start)
    here, there = old[start : len(old) - end], new[start : len(new) - end]
    shared = {*map(id, here)} & {*map(id, there)}
    before: dict[_K, _V] = {}
    after: dict[_K, _V] = {}
    for found, chunks in ((before, here), (after, there)):
        for chunk in chunks:
            if id(chunk) not in shared:
                found.update(chunk)
    return before, after


def _count_same(one: Iterable[object], other: Iterable[object], most: int) -> int:
    return next(compress(count(), map(is_not, one, other)), most)


def _cut(entries: dict[_K, _V]) -> Iterator[dict[_K, _V]]:
    """Give the entries in order, in chunks; none when there are none."""
    keys: list[Any] = list(entries)
    keys.sort()
    if len(keys) <= CHUNK:
        if keys:
            yield {key: entries[key] for key in keys}
        return
    for at in range(0, len(keys), _FILL):
        yield {key: entries[key] for key in keys[at : at + _FILL]}


def _list_firsts(chunks: list[dict[_K, _V]]) -> list[Any]:
    """Return the first key of every chunk but the first one."""
    return [next(iter(chunk)) for chunk in chunks[1:]]


EMPTY: SortedMap[Any, Any] = SortedMap()
