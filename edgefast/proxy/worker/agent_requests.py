"""AgentRequests: a worker's requests to the agent: keys of issuers, connections that other workers have.

In: distinct items, as often as the engine requests them.
Out: one message at a time, one for each item until it is requested again.
Must never: block its caller, or keep more than one message for each item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["AgentRequests"]

_Thing = TypeVar("_Thing", bound=Hashable)


class AgentRequests(Generic[_Thing]):
    """Queues a worker's requests to the agent, each one once. `send` has a deadline of its own."""

    def __init__(self, send: Callable[[_Thing], Awaitable[None]]) -> None:
        self._send = send
        self._wanted: dict[_Thing, None] = {}
        self._came = asyncio.Event()

    def ask(self, thing: _Thing) -> None:
        """Note one."""
        self._wanted[thing] = None
        self._came.set()

    async def run(self) -> None:
        """Pass them on, until cancelled."""
        while True:
            await self._came.wait()
            self._came.clear()
            while self._wanted:
                thing = next(iter(self._wanted))
                del self._wanted[thing]
                try:
                    await self._send(thing)
                except TimeoutError:
                    pass  # who still waits has a deadline of its own, or asks again
