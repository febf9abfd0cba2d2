"""Names of backends, resolved again and again.

In: hostnames that clusters watch. Out: callbacks with a tuple of addresses whenever an answer differs from the one before.
A failed look-up keeps the last good answer; a name that never resolved is reported as (). One look-up per name at a time,
each with a deadline. It must never be asked on the request path: an answer is there, or it is not.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

__all__ = ["Resolver"]

INTERVAL = 10.0  # seconds between look-ups of one name; addresses behind a name change at DNS speed
RETRY = 1.0  # seconds after a failed one
DEADLINE = 5.0  # seconds for one look-up

Callback = Callable[[str, tuple[str, ...]], None]


class Resolver:
    """Watches names on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watchers: dict[str, list[Callback]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, tuple[str, ...]] = {}

    def watch(self, hostname: str, callback: Callback) -> None:
        """Call back with the addresses of a name, soon and after every change."""
        self._watchers.setdefault(hostname, []).append(callback)
        if hostname in self._known:  # soon, not now: the caller is in the middle of something
            self._loop.call_soon(self._tell, hostname, callback)
        elif hostname not in self._tasks:
            self._tasks[hostname] = self._loop.create_task(self._follow(hostname))

    def _tell(self, hostname: str, callback: Callback) -> None:
        if callback in self._watchers.get(hostname, ()) and hostname in self._known:
            callback(hostname, self._known[hostname])

    def forget(self, hostname: str, callback: Callback) -> None:
        """Undo one watch()."""
        callbacks = self._watchers.get(hostname, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self._watchers.pop(hostname, None)
            self._known.pop(hostname, None)
            task = self._tasks.pop(hostname, None)
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """Stop all look-ups."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._watchers.clear()
        self._known.clear()

    async def _follow(self, hostname: str) -> None:
        while True:
            answer = await self._resolve(hostname)
            if answer is None:
                answer, wait = self._known.get(hostname, ()), RETRY
            else:
                wait = INTERVAL
            if self._known.get(hostname) != answer:
                self._known[hostname] = answer
                for callback in list(self._watchers.get(hostname, ())):
                    callback(hostname, answer)
            await asyncio.sleep(wait)

    async def _resolve(self, hostname: str) -> tuple[str, ...] | None:
        try:
            async with asyncio.timeout(DEADLINE):
                found = await self._loop.getaddrinfo(
                    hostname, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
                )
        except (OSError, TimeoutError, UnicodeError):
            return None
        return tuple(dict.fromkeys(str(item[4][0]) for item in found))
