"""History: the table of one fleet and its last changes, so that a stream stores only a sequence number.

In: successive shards.
Out: the difference between any of the last tables and the present one. Every change gets a sequence
number and an undo entry (name: version before), so the cost of a difference depends on the changes,
not on the size of the table. A stream with the table of a number stores nothing else. A resource's
wire bytes are encoded when the first stream needs them, shared by all streams that send at that
time, and then released. No I/O, no clock.
Must never: keep old shards in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import islice

import msgspec

from controller.xds_server.limits import LOG_ENTRIES
from edgefast.collections.sorted_map import find_unlike
from edgefast.table.shards import TYPES, Delta, Key, Resource, Shards
from edgefast.xds.messages import encode_item

__all__ = ["NOTHING", "Held", "History"]

_RANK = {type_: rank for rank, type_ in enumerate(TYPES)}


class Held(msgspec.Struct, frozen=True):
    """What a proxy holds: the table with this number (0: nothing), but for some names.

    `other`: name -> version that is held in fact; None for one that is not held, "" for one of unknown version.
    """

    number: int = 0
    other: Mapping[Key, str | None] = {}


NOTHING = Held()


class History:
    """The table of one fleet with its last changes, to compute what a stream lacks.

    `number` is the present table's; 0 before the first.
    """

    def __init__(self, limit: int = LOG_ENTRIES) -> None:
        self.number = 0
        self.version = ""
        self.encoded = 0  # resources whose wire bytes were made, ever
        self._shards = Shards({}, "")
        self._limit = limit
        self._undo: deque[dict[Key, str | None]] = deque()  # the last one led to `number`
        self._entries = 0
        self._numbers: dict[
            str, int
        ] = {}  # version -> newest number, of those in `_undo` and the present
        self._items: dict[Key, tuple[str, bytes]] = {}  # key -> version, wire bytes

    @property
    def resources(self) -> Mapping[Key, Resource]:
        """The present table."""
        return self._shards.resources

    @property
    def items(self) -> int:
        """Resources whose wire bytes are kept."""
        return len(self._items)

    def publish(self, shards: Shards) -> bool:
        """Make `shards` the present table; False when it is the one that we have."""
        if self.number and shards.version == self.version:
            self._shards = shards
            return False
        # The keys are the tables' own: a log of many changes keeps no others.
        gone, come = find_unlike(self._shards.resources, shards.resources)
        undo: dict[Key, str | None] = {
            key: None if old is None else old.version
            for key, one in come.items()
            if (old := gone.get(key)) is None or old.version != one.version
        }
        undo.update((key, old.version) for key, old in gone.items() if key not in come)
        for key in undo:
            self._items.pop(key, None)
        self._shards = shards
        self.version = shards.version
        self.number += 1
        if self.number > 1:  # number 0 holds nothing: no entry is needed to know that
            self._undo.append(undo)
            self._entries += len(undo)
        self._numbers.pop(self.version, None)
        self._numbers[self.version] = self.number
        self._trim()
        return True

    def number_of(self, version: str) -> int:
        """Return the newest number of a version that is remembered, 0 for any other."""
        return self._numbers.get(version, 0)

    def compare(self, versions: Mapping[Key, str]) -> Held:
        """Say in the fewest words what somebody holds who holds just these versions."""
        present = self._shards.resources
        other: dict[Key, str | None] = {
            key: version
            for key, version in versions.items()
            if (one := present.get(key)) is None or one.version != version
        }
        missing = len(present) - (len(versions) - sum(key not in present for key in other))
        if len(other) + missing >= len(versions):
            return Held(0, versions)
        if missing:
            other.update((key, None) for key in present if key not in versions)
        return Held(self.number, other)

    def difference(self, held: Held) -> Delta | None:
        """Return what turns `held` into the present table; None when it is too far back to know."""
        present = self._shards.resources
        before: dict[Key, str | None] = {}
        if held.number == 0:
            before = dict.fromkeys(present)
        else:
            steps = self.number - held.number
            if steps > len(self._undo):
                return None
            for undo in islice(self._undo, len(self._undo) - steps, None):
                for key, version in undo.items():
                    before.setdefault(key, version)
        before.update(held.other)
        put = []
        remove = []
        for key, version in before.items():
            one = present.get(key)
            if one is None:
                if version is not None:
                    remove.append(key)
            elif one.version != version:
                put.append(one)
        put.sort(key=lambda one: (_RANK[one.type], one.name))
        remove.sort(key=lambda key: (-_RANK[key[0]], key[1]))
        return Delta(tuple(put), tuple(remove))

    def item(self, resource: Resource) -> bytes:
        """Return the wire bytes of a resource."""
        key = (resource.type, resource.name)
        known = self._items.get(key)
        if known is not None and known[0] == resource.version:
            return known[1]
        data = encode_item(resource)
        self.encoded += 1
        # A batch may still send what is no longer the present table's: that is not kept.
        if self._shards.resources.get(key) is resource:
            self._items[key] = (resource.version, data)
        return data

    def forget_items(self) -> None:
        """Let the wire bytes go: every stream has sent what it needed of them."""
        self._items.clear()

    def _trim(self) -> None:
        while self._entries > self._limit and self._undo:
            self._entries -= len(self._undo.popleft())
        oldest = self.number - len(self._undo)
        while (
            self._numbers
            and (first := next(iter(self._numbers)))
            and (self._numbers[first] < oldest)
        ):
            del self._numbers[first]
