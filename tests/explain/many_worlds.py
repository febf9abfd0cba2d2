"""Random tables in worlds of a few each: what a comparison over hundreds of them is run by."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

from core.world import World

DEADLINE = 240.0  # seconds for the tables of one world: only a hang comes near it
PER_WORLD = 20  # tables: a world's arena is never cleaned up


class _Bench(Protocol):
    world: World


B = TypeVar("B", bound=_Bench)


def run_worlds(
    make: Callable[[], B],
    compare: Callable[[B, range, int], Coroutine[Any, Any, Mapping[str, int]]],
    seeds: range,
    requests: int,
) -> dict[str, int]:
    """Compare over all seeds, with so many requests each."""
    total: Counter[str] = Counter()
    for start in range(seeds.start, seeds.stop, PER_WORLD):
        bench = make()
        part = range(start, min(start + PER_WORLD, seeds.stop))
        try:
            work = asyncio.wait_for(compare(bench, part, requests), DEADLINE)
            found = bench.world.loop.run_until_complete(work)
            total.update(found)
        finally:
            bench.world.close()
    return dict(total)
