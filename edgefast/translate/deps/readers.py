"""Readers: the index from each fact to its readers, so that a changed fact finds them without a scan.

In: the facts that each outcome read, as outcomes come and go. Out: the readers of changed facts. An
endpoint change among ten thousand routes costs the routes and clusters that read it: architecture
decision 2.
Must never: miss a reader; the owner of outcomes calls `follow` for each one that it puts, replaces
or drops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

from edgefast.collections.sorted_map import Draft, SortedMap
from edgefast.translate.deps.dependency_facts import CLUSTER_OF, Fact

_R = TypeVar("_R")

#: (fact, reader) of all that was read.
Readers = SortedMap[tuple[Fact, _R], None]

#: Facts that `Reader.noted` leaves out, and kinds of the clusters that are noted instead.
_IMPLIED = {kind: name for kind, name in CLUSTER_OF.items() if kind != "Slices"}


def find_readers(readers: Readers[_R], facts: Iterable[Fact]) -> set[_R]:
    """Return who read any of these facts."""
    found: set[_R] = set()
    for fact in facts:
        # A tuple of one comes before every longer one that begins alike.
        for read, reader in readers.starting_at((fact,)):
            if read != fact:
                break
            found.add(reader)
        kind = _IMPLIED.get(fact[0])
        if kind is not None:
            # Who has read a cluster does not say that it has read this.
            begin = (kind, *fact[1:])
            for read, reader in readers.starting_at((begin,)):
                if read[:3] != begin:
                    break
                found.add(reader)
    return found


def follow(
    readers: Draft[tuple[Fact, _R], None],
    reader: _R,
    before: Collection[Fact] = (),
    after: Collection[Fact] = (),
) -> None:
    """Note that a reader, which had read `before`, has read `after` instead."""
    if before is after or before == after:
        return
    for fact in after:
        if fact not in before:
            readers[fact, reader] = None
    for fact in before:
        if fact not in after:
            del readers[fact, reader]
