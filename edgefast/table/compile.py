"""Compile: compile_fleet, ir.Fleet -> Shards; it compiles only what changed.

In: a fleet and, if there is one, the shards of its last compilation. Out: new shards. Objects that
the fleet shares with the last one by identity are skipped: translate keeps unchanged objects. The
same fleet gives the same bytes; only the number of fragments of a very large host may depend on its
past (fragment.py).
Must never: mutate the fleet or the previous shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress, count
from operator import is_not
from typing import TypeVar

import msgspec

from edgefast import ir
from edgefast.collections.sorted_map import EMPTY, SortedMap, Values, find_unlike
from edgefast.diagnostics.problem import Problem
from edgefast.table.build import BlobBuilder
from edgefast.table.fragment import Compiled, compile_virtual_host
from edgefast.table.shards import (
    RESOURCE_LIMIT,
    Key,
    Resource,
    Shards,
    digest_resource,
    make_resource,
)

_encode = msgspec.msgpack.Encoder().encode

Named = (
    ir.Listener
    | ir.StreamRoute
    | ir.Cluster
    | ir.Secret
    | ir.PolicyUnit
    | ir.RateLimitStore
    | ir.Proxies
)
#: What an object was that became one resource of its name.
_ONE = Compiled(())
T = TypeVar(
    "T",
    ir.VirtualHost,
    ir.StreamRoute,
    ir.Listener,
    ir.Cluster,
    ir.Secret,
    ir.PolicyUnit,
    ir.RateLimitStore,
    ir.Proxies,
)

LIMIT_STORE = "store"  # the name of the one resource of type limit_store
PROXIES = "fleet"  # and of the one of type proxies


class _Memo(msgspec.Struct, frozen=True):
    """What one compilation leaves to the next. The fleet is kept alive, so that the ids of its objects stay theirs."""

    fleet: ir.Fleet
    # By id of the object, of those that became something else than one resource of their name.
    compiled: SortedMap[int, Compiled]
    problems: SortedMap[int, tuple[Problem, ...]]  # of those that have any


def compile_fleet(fleet: ir.Fleet, previous: Shards | None = None) -> Shards:
    """Compile all that a fleet serves; `previous` makes it cheap and keeps the cut of large hosts.

    What cannot be sent (a resource above 1 MiB, a path that no request can meet) is in `Shards.problems`, together with
    what is served instead. Raises ValueError when two resources have one name: a bug of the translation.
    """
    if previous is None or not isinstance(previous.memo, _Memo):
        previous = Shards(EMPTY, "0", memo=_Memo(ir.Fleet(name=fleet.name), EMPTY, EMPTY))
    work = _Work(previous)
    builder = BlobBuilder()

    def compile_host(host: ir.VirtualHost, before: Compiled | None) -> Compiled:
        return compile_virtual_host(host, before, builder)

    old = work.memo.fleet
    work.replace("virtual_host", old.virtual_hosts, fleet.virtual_hosts, _name_host, compile_host)
    streams = _compile_as("stream_route")
    work.replace("stream_route", old.stream_routes, fleet.stream_routes, _name, streams)
    work.replace("listener", old.listeners, fleet.listeners, _name, _compile_as("listener"))
    work.replace("cluster", old.clusters, fleet.clusters, _name, _compile_as("cluster"))
    work.replace("secret", old.secrets, fleet.secrets, _name, _compile_as("secret"))
    work.replace("policy", old.policies, fleet.policies, _name, _compile_as("policy"))
    stores = _compile_as("limit_store")
    work.replace("limit_store", _stores(old), _stores(fleet), _name, stores)
    proxies = _compile_as("proxies")
    work.replace("proxies", _proxies(old), _proxies(fleet), _name, proxies)
    return work.finish(fleet)


def _stores(fleet: ir.Fleet) -> tuple[ir.RateLimitStore, ...]:
    return () if fleet.limit_store is None else (fleet.limit_store,)


def _proxies(fleet: ir.Fleet) -> tuple[ir.Proxies, ...]:
    return () if fleet.proxies is None else (fleet.proxies,)


class _Work:
    """The new shards while they are made out of the old ones."""

    def __init__(self, previous: Shards) -> None:
        assert isinstance(previous.memo, _Memo)
        self.memo = previous.memo
        self._compiled = self.memo.compiled.edit()
        self._problems = self.memo.problems.edit()
        self._resources = previous.edit()
        self._digest = int(previous.version, 16)

    def replace(
        self,
        type_: str,
        old: Sequence[T],
        new: Sequence[T],
        name: Callable[[T], str],
        compile_one: Callable[[T, Compiled | None], Compiled],
    ) -> None:
        """Take out what is no longer there, then compile what is new; `compile_one` gets what its name was before."""
        removed, added = find_changed(old, new)
        before = {(named := name(item)): self._remove(item, (type_, named)) for item in removed}
        for item in added:
            compiled = compile_one(item, before.get(name(item)))
            if len(compiled.resources) != 1 or compiled.problems:
                self._compiled[id(item)] = compiled
            if compiled.problems:
                self._problems[id(item)] = compiled.problems
            for resource in compiled.resources:
                self._add(resource)

    def _remove(self, item: object, key: Key) -> Compiled:
        """Take out what an object became; `key`: of the one resource that it has if nothing else is known of it."""
        compiled = self._compiled.pop(id(item), _ONE)
        self._problems.pop(id(item), None)
        keys = [key]
        if compiled is not _ONE:
            keys = [(one.type, one.name) for one in compiled.resources]
        for one in keys:
            self._digest -= digest_resource(self._resources[one])
            del self._resources[one]
        return compiled

    def _add(self, resource: Resource) -> None:
        key = (resource.type, resource.name)
        if key in self._resources:
            raise ValueError(f"two resources of type {key[0]} are named {key[1]}")
        self._resources[key] = resource
        self._digest += digest_resource(resource)

    def finish(self, fleet: ir.Fleet) -> Shards:
        problems = self._problems.done()
        found = sorted((p for each in problems.values() for p in each), key=Problem.text)
        return Shards(
            resources=self._resources.done(),
            version=f"{self._digest % 2**128:032x}",
            problems=tuple(found),
            memo=_Memo(fleet, self._compiled.done(), problems),
        )


def find_changed(old: Sequence[T], new: Sequence[T]) -> tuple[list[T], list[T]]:
    """Return the items of `old` that are not in `new`, and the other way round, by identity, in order."""
    if old is new:
        return [], []
    if isinstance(old, Values) and isinstance(new, Values):
        gone, come = find_unlike(old.map, new.map)
        return list(gone.values()), list(come.values())
    old, new = tuple(old), tuple(new)
    most = min(len(old), len(new))
    start = _count_same(old, new, most)
    end = _count_same(reversed(old), reversed(new), most)
    end = min(end, most - start)
    before: Sequence[T] = old[start : len(old) - end]
    after: Sequence[T] = new[start : len(new) - end]
    kept = {*map(id, before)} & {*map(id, after)}
    return [i for i in before if id(i) not in kept], [i for i in after if id(i) not in kept]


def _count_same(a: Iterable[T], b: Iterable[T], most: int) -> int:
    """Return how many items are the same from the beginning; one of the two may end before."""
    return next(compress(count(), map(is_not, a, b)), most)


def _name_host(host: ir.VirtualHost | ir.StreamRoute) -> str:
    return f"{host.listener}/{host.hostname}"


def _name(item: Named) -> str:
    if isinstance(item, ir.StreamRoute):
        return _name_host(item)
    if isinstance(item, ir.Proxies):
        return PROXIES
    return LIMIT_STORE if isinstance(item, ir.RateLimitStore) else item.name


def _compile_as(type_: str) -> Callable[[Named, Compiled | None], Compiled]:
    def compile_named(item: Named, before: Compiled | None) -> Compiled:
        data, name = _encode(item), _name(item)
        if len(data) > RESOURCE_LIMIT:
            message = f"{type_} {name} has {len(data)} bytes, the limit is {RESOURCE_LIMIT}; it is not served"
            return Compiled((), (Problem(None, "", "TooLong", message),))
        return Compiled((make_resource(type_, name, data),))

    return compile_named
