"""Shards: everything that one fleet serves, as named and versioned bytes, and the difference between two of them.

In: encoded resources. Out: `Resource`, `Shards`, `Delta`. A delta lists what to put in the order in which it may take
effect without a request ever meeting a name that is not there, then what to remove in the reverse order
(architecture D6). Must never: decode a resource, or compare bytes where versions say enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from edgefast.problem import Problem

RESOURCE_LIMIT = 1024 * 1024  # bytes; gRPC refuses messages above 4 MiB by default

# Puts in this order, removals in the reverse: a rule never names a cluster that is not there yet, nor counts where no store
# is, and a more specific listener owns its hosts the moment it exists, so their rules must be there first.
TYPES = ("secret", "limit_store", "cluster", "fragment", "virtual_host", "listener")
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

    `problems` says what could not be compiled and what is served instead. The rest belongs to compile_fleet and diff:
    `memo` is what the next compilation reuses; `base` and `touched` name the shards these were made from and the keys
    that may differ from them, so that a small change costs little however large the fleet is.
    """

    resources: Mapping[Key, Resource]
    version: str
    problems: tuple[Problem, ...] = ()
    memo: object = field(default=None, repr=False)
    identity: object = field(default_factory=object, repr=False)
    base: object = field(default=None, repr=False)
    touched: frozenset[Key] = field(default=frozenset(), repr=False)


def digest_resource(resource: Resource) -> int:
    """The resource's share of the version of its shards: 128 bits, to be added up modulo 2**128."""
    text = f"{resource.type}\0{resource.name}\0{resource.version}"
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")


def diff(old: Shards | None, new: Shards) -> Delta:
    """Return the changes from `old` (None: nothing) to `new`; resources of equal version are left out."""
    before: Mapping[Key, Resource] = old.resources if old is not None else {}
    after = new.resources
    keys: Iterable[Key]
    if old is not None and new.base is old.identity:
        keys = new.touched
    else:
        keys = before.keys() | after.keys()
    put = []
    remove = []
    for key in keys:
        resource = after.get(key)
        known = before.get(key)
        if resource is None:
            if known is not None:
                remove.append(key)
        elif known is None or known.version != resource.version:
            put.append(resource)
    put.sort(key=lambda r: (_RANK[r.type], r.name))
    remove.sort(key=lambda key: (-_RANK[key[0]], key[1]))
    return Delta(tuple(put), tuple(remove))
