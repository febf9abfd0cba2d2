"""Concurrency limit of the small HTTP server: a few expensive answers run at a time, so cheap answers never wait.

In: answers that a handler will compute.
Out: a slot for each answer, or `Busy` when the queue is long or slow. After an answer, its slot
stays unused for as long as the answer took. Continuous requests therefore use at most half of the
time of the process.
Must never: limit a probe or a drain command.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["LINE", "Busy", "ConcurrencyLimit"]

#: Maximum number of answers that wait for a slot.
LINE = 16
#: Maximum wait, in seconds.
_PATIENCE = 5.0
#: Maximum time that a slot stays unused after an answer, in seconds.
_REST = 0.2


class Busy(Exception):
    """The queue is full, or no slot became free in time."""


class ConcurrencyLimit:
    """Limits how many expensive answers a small HTTP server makes at the same time."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._free = asyncio.Semaphore(at_once)
        self._line = 0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block; raises Busy."""
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
