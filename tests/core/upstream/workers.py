"""Two workers in one process: two engines on one loop that share how their backends fare, and counters of limits.

In: fleets, for both. Out: a port of each. Must never let one know more of the other than the segment, and what it asks for, tell.
"""

from __future__ import annotations

import mmap
import os

from core.world import World
from edgefast import ir
from edgefast._csrc import ffi, lib

RECORDS = 64
SETS = 4  # of requests in progress


def make_health(workers: int) -> memoryview:
    """A segment as the agent makes it."""
    extent = int(lib.ef_health_size(RECORDS, workers + 1))
    size = extent + int(lib.ef_local_size(SETS))
    memory = mmap.mmap(-1, size)
    view = ffi.from_buffer(memory)
    assert lib.ef_health_init(view, extent, RECORDS, workers + 1) == 0
    assert lib.ef_local_init(view + extent, size - extent, SETS, os.urandom(16)) == 0
    ffi.release(view)
    return memoryview(memory)


class Workers(World):
    """The first of them; the other one is `other`. Whoever asks for connections is lent some at once."""

    def __init__(self) -> None:
        self.health = make_health(2)
        super().__init__(health=self.health)
        self.other = World(health=self.health, limits=self.limits, worker=1, loop=self.loop)
        self.lender, self.other.lender = self.other.engine, self.engine

    async def serve_both(self, fleet: ir.Fleet) -> tuple[int, int]:
        """A port of each."""
        return await self.serve(fleet), await self.other.serve(fleet)

    async def finish(self) -> None:
        """Check both."""
        for client in self._clients:
            client.close()
        await self.other.finish()
        await super().finish()

    def close(self) -> None:
        """Let go of both."""
        self.other.close()
        super().close()

    def used(self) -> int:
        """Records that anybody holds."""
        view = ffi.from_buffer(self.health)
        found = int(lib.ef_health_used(ffi.cast("ef_health *", view)))
        ffi.release(view)
        return found
