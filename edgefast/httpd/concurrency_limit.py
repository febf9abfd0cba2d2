"""Turns: a few answers that cost something at a time, so that those which cost nothing never wait for them.

In: answers to be made. Out: a turn for each, or Busy when the line is long or slow. After an answer its place rests for as
long as it took: whoever asks without end gets half of the time at most, and the process the rest.
Must never: be asked for by a probe, or by an order to drain.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["LINE", "Busy", "ConcurrencyLimit"]

#: Those who wait for a turn.
LINE = 16
#: Seconds that they wait.
_PATIENCE = 5.0
#: Seconds that a place rests at most.
_REST = 0.2


class Busy(Exception):
    """There is no turn in time."""


class ConcurrencyLimit:
    """Limits how many expensive answers a small HTTP server makes at the same time."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._free = asyncio.Semaphore(at_once)
        self._line = 0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it for the block; raises Busy."""
        if self._line >= LINE:
            raise Busy
        self._line += 1
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._free.acquire()
        except TimeoutError:
            raise Busy from None
        finally:
            self._line -= 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            yield
        finally:
            loop.call_later(min(loop.time() - began, _REST), self._free.release)
