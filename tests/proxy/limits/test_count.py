"""How many limits with distinct values a table has: the room in shared memory is divided by that."""

from __future__ import annotations

import asyncio

from edgefast.proxy.limits.count import LimitCount
from edgefast.proxy.limits.memory import LimitMemory
from edgefast.proxy.tables.arena import Arena
from edgefast.proxy.tables.worker_tables import WorkerTables
from edgefast.table import Shards
from edgefast.table.shards import make_resource
from proxy.limited import limited_table

#: Not a blob, and with the word that blobs with limits have: from another release, or damaged.
_BROKEN = make_resource("virtual_host", "ns/gw/other/*", b"\xffrate_limits" * 8)


async def test_a_blob_that_cannot_be_read_is_passed_over() -> None:
    """Workers refuse it, and it is a problem then; the agent goes on, and counts the others."""

    arena, memory = Arena(1 << 22), LimitMemory()
    ledger, count = WorkerTables(arena), LimitCount(arena, memory)
    counting = asyncio.create_task(count.run())
    before = memory.share(sliding=False)
    shards = limited_table(8080)
    resources = {**shards.resources, ("virtual_host", _BROKEN.name): _BROKEN}
    try:
        ledger.advance(Shards(resources, "with a broken one"))
        count.follow(ledger.current.touched, ledger.current.placed)
        async with asyncio.timeout(60):
            while memory.share(sliding=False) == before:
                assert not counting.done(), counting.exception()
                await asyncio.sleep(0.001)
    finally:
        counting.cancel()
        await asyncio.gather(counting, return_exceptions=True)
        memory.close()
        arena.close()
