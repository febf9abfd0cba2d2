"""Wishes: what a worker wants of the others, on its way to the agent.

In: names of clusters whose connections they are to lend, as often as the engine likes. Out: one word at a time for each.
Must never block its caller, or keep more than a word for each cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from edgefast.proxy.control.messages import ConnectionsWanted

__all__ = ["Wishes"]


class Wishes:
    """See the module's text. `send` has a deadline of its own."""

    def __init__(self, send: Callable[[ConnectionsWanted], Awaitable[None]]) -> None:
        self._send = send
        self._wanted: dict[str, None] = {}
        self._came = asyncio.Event()

    def ask(self, cluster: str) -> None:
        """Note one."""
        self._wanted[cluster] = None
        self._came.set()

    async def run(self) -> None:
        """Pass them on, until cancelled."""
        while True:
            await self._came.wait()
            self._came.clear()
            while self._wanted:
                cluster = next(iter(self._wanted))
                del self._wanted[cluster]
                try:
                    await self._send(ConnectionsWanted(cluster))
                except TimeoutError:
                    pass  # who still waits asks again
