"""LastGoodKeeper: decides when the last valid table is written to disk.

In: the newest table that all workers hold, and the source's confirmation of a version (it was made
from completely read sources).
Out: `LastGood.save` in a thread, at most once a second (less often for large tables), repeated
until the write succeeds, and once more at exit.
Must never: keep an unconfirmed table, or one without a listener, because its source may have been
missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from edgefast.proxy.tables.last_good import LastGood
from edgefast.table import Shards

__all__ = ["LastGoodKeeper"]

#: Seconds between two tables on their way to the disk, and how often the time of one must pass before the next: a large
#: table that changes all the time must not keep a CPU busy.
_EVERY = 1.0
_TIMES = 20.0
#: Seconds until a table that the disk did not take is tried again; they double.
_AGAIN = 1.0
_AGAIN_MAX = 30.0
#: Seconds that the last one may take when the process ends.
_LAST = 3.0


class LastGoodKeeper:
    """Decides when the last good table is written to disk.

    `look` whenever workers may have come to hold another table.
    """

    def __init__(self, kept: LastGood | None, settled: Callable[[], Shards | None]) -> None:
        self._kept = kept
        self._settled = settled
        self._approved = ""
        self._newest: Shards | None = None  # that was or is to be written
        self._due: Shards | None = None
        self._work = asyncio.Event()

    def release_ownership(self) -> None:
        """Write no more: another process keeps its own tables there from now on."""
        self._kept = self._due = None

    def approve(self, version: str) -> None:
        """Let the table of this version be kept as soon as all workers hold it."""
        self._approved = version
        self.look()

    def look(self) -> None:
        """Take the table that all workers hold, if it is one to keep and a new one."""
        shards = self._settled() if self._kept is not None else None
        if shards is None or shards is self._newest or shards.version != self._approved:
            return
        if next(shards.names_of("listener"), None) is not None:
            self._newest = self._due = shards
            self._work.set()

    async def run(self) -> None:
        """Write, until cancelled; then write what has not been."""
        kept = self._kept
        if kept is None:
            return
        await asyncio.to_thread(kept.tidy)
        again = _AGAIN
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                began = time.monotonic()
                if await self._save(kept):
                    again = _AGAIN
                    await asyncio.sleep(max(_EVERY, (time.monotonic() - began) * _TIMES))
                else:
                    await asyncio.sleep(again)
                    again = min(again * 2, _AGAIN_MAX)
                    self._work.set()
        finally:
            # A disk that hangs must not hold up the end.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST):
                    await self._save(kept)

    async def _save(self, kept: LastGood) -> bool:
        """Write what is due; False when it still is."""
        # Due until it is written: a cancelled thread goes on, but nobody would know how it ended.
        if (shards := self._due) is None:
            return True
        written = await asyncio.to_thread(kept.save, shards)
        if written and self._due is shards:
            self._due = None
        return written
