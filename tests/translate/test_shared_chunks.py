"""What a translation hands to the next one shares all but a few chunks with it, however many objects there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from edgefast import ir
from edgefast.collections.sorted_map import SortedMap, Values
from edgefast.table import compile_fleet
from edgefast.translate import Settings, Work, translate
from tests.translate import world

pytestmark = pytest.mark.pure

PLAIN = Settings()


def _maps(found: object) -> Iterator[SortedMap[Any, Any]]:
    """Every map of what a translation hands to the next one."""
    if isinstance(found, SortedMap):
        yield found
    elif isinstance(found, Values):
        yield found.map
    elif isinstance(found, dict):
        for one in found.values():
            yield from _maps(one)
    elif isinstance(found, msgspec.Struct) and not isinstance(found, ir.Listener):
        for name in type(found).__struct_fields__:
            yield from _maps(getattr(found, name))


def test_one_changed_route_leaves_all_but_a_few_chunks_shared() -> None:
    """The cost of a change is in the entries that are made anew, at any number of routes (architecture decision 2)."""
    snapshot = world.many(1000)
    before = translate(snapshot, PLAIN)
    after = translate(
        snapshot.replace([world.route(500, path="/new"), world.route(2000)]), PLAIN, before
    )
    pairs = list(zip(_maps(before.memo), _maps(after.memo), strict=True))
    assert sum(len(old) == 1000 and len(new) == 1001 for old, new in pairs) >= 4
    for old, new in pairs:
        kept = {*map(id, old._chunks)} & {*map(id, new._chunks)}
        assert len(old._chunks) - len(kept) <= 8  # a chunk for each fact that the new one reads


def test_a_moved_endpoint_leaves_all_but_a_few_chunks_shared() -> None:
    snapshot = world.many(400, services=400)
    before = translate(snapshot, PLAIN)
    shards = compile_fleet(before.ir.fleets[0])
    after = translate(snapshot.replace([world.endpoints("s200", "10.9.9.9")]), PLAIN, before)
    assert after.work == Work(routes=0, virtual_hosts=0, clusters=1)
    next_shards = compile_fleet(after.ir.fleets[0], shards)
    maps = [
        (list(_maps(before.memo)), list(_maps(after.memo))),
        (
            [shards.resources, *_maps(shards.memo)],
            [next_shards.resources, *_maps(next_shards.memo)],
        ),
    ]
    for olds, news in maps:
        assert sum(len(old) >= 400 for old in olds) >= 2
        for old, new in zip(olds, news, strict=True):
            assert isinstance(old, SortedMap) and isinstance(new, SortedMap)
            # Some are ordered by addresses of objects: the old and the new entry may be in two chunks, and a neighbour
            # may join either that is short.
            kept = {*map(id, old._chunks)} & {*map(id, new._chunks)}
            assert len(old._chunks) - len(kept) <= 8
