"""Shards: everything that one fleet serves, as named and versioned bytes, and the difference between two of them.

In: encoded resources. Out: `Resource`, `Shards`, `Delta`. A delta lists resources to put, in an
order without references to missing names at any time, then those to remove in the reverse order
(architecture D6). Must never: decode a resource, or compare bytes where versions suffice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap, find_unlike
from edgefast.diagnostics.problem import Problem

RESOURCE_LIMIT = 1024 * 1024  # bytes; gRPC refuses messages above 4 MiB by default

# Puts in this order, removals in the reverse: endpoints are put in order by zones that are known, a rule never names a cluster or a policy that is not there yet, nor counts where no store
# is, and a more specific listener owns its hosts the moment it exists, so their rules must be there first.
TYPES = (
    "secret",
    "limit_store",
    "proxies",
    "cluster",
    "policy",
    "fragment",
    "virtual_host",
    "stream_route",
    "listener",
)
_RANK = {type_: rank for rank, type_ in enumerate(TYPES)}

Key = tuple[str, str]  # (type, name)


class Resource(msgspec.Struct, frozen=True, gc=False):
    """One unit of sending and acknowledging. `version` is 16 hex digits of the blake2b of `data`."""

    type: str
    name: str
    version: str
    data: bytes

    def __repr__(self) -> str:
        return f"Resource({self.type!r}, {self.name!r}, {self.version!r}, <{len(self.data)} bytes>)"


def make_resource(type_: str, name: str, data: bytes) -> Resource:
    """Return the resource with its version computed."""
    return Resource(type_, name, blake2b(data, digest_size=8).hexdigest(), data)


@dataclass(frozen=True, slots=True)
class Delta:
    """What turns one set of shards into another: first every put in order, then every removal in order."""

    put: tuple[Resource, ...] = ()
    remove: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """All resources of a fleet by (type, name). `version` is a digest of all their versions, in any order.

    `problems` says what could not be compiled and what is served instead. `memo` belongs to compile_fleet: what the next
    compilation reuses.
    """

    resources: Mapping[Key, Resource]
    version: str
    problems: tuple[Problem, ...] = ()
    memo: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.resources, SortedMap):
            object.__setattr__(self, "resources", SortedMap(self.resources))

    def names_of(self, type_: str) -> Iterator[str]:
        """Give the names of the resources of a type, in order, without a look at the others."""
        assert isinstance(self.resources, SortedMap)
        for found, name in self.resources.starting_at((type_, "")):
            if found != type_:
                return
            yield name

    def edit(self) -> Draft[Key, Resource]:
        """Return what the next shards' resources are made with."""
        assert isinstance(self.resources, SortedMap)
        return self.resources.edit()


def digest_resource(resource: Resource) -> int:
    """The resource's share of the version of its shards: 128 bits, to be added up modulo 2**128."""
    text = f"{resource.type}\0{resource.name}\0{resource.version}"
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")


def diff(old: Shards | None, new: Shards) -> Delta:
    """Return the changes from `old` (None: nothing) to `new`; resources of equal version are left out."""
    before: Mapping[Key, Resource] = old.resources if old is not None else EMPTY
    after = new.resources
    gone, come = find_unlike(before, after)
    put = [
        one
        for key, one in come.items()
        if (known := before.get(key)) is None or known.version != one.version
    ]
    remove = [key for key in gone if key not in after]
    put.sort(key=lambda r: (_RANK[r.type], r.name))
    remove.sort(key=lambda key: (-_RANK[key[0]], key[1]))
    return Delta(tuple(put), tuple(remove))
