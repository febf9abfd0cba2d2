"""Resolver: resolves names of backends repeatedly.

In: hostnames that clusters watch. Out: callbacks with a tuple of addresses whenever an answer
differs from the previous one. A failed look-up keeps the last valid answer. A name that never
resolved is reported as () once a look-up of its own failed or is overdue. The system's resolver
cannot be interrupted, so a look-up goes on until it returns: one per name at a time, a bounded
number in all. Names that hang get few places, so that they never block the others. It must never be
used on the request path: a request uses the present answer or none.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from itertools import islice

__all__ = ["Resolver"]

INTERVAL = 10.0  # seconds between look-ups of one name; addresses behind a name change at DNS speed
RETRY = 1.0  # seconds after a failed one; doubles up to INTERVAL
DEADLINE = 5.0  # seconds after which a look-up is overdue
PLACES = 16  # look-ups at a time
SUSPECTS = 4  # besides, of names whose last look-up was overdue
OVERDUE = 16  # besides, that were not suspected and have not returned yet

Callback = Callable[[str, tuple[str, ...]], None]
Answer = tuple[str, ...] | None  # None: it failed


def look_up(hostname: str) -> tuple[str, ...]:
    """Ask the system, for as long as it takes. Raises OSError or UnicodeError."""
    found = socket.getaddrinfo(hostname, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return tuple(dict.fromkeys(str(item[4][0]) for item in found))


class Resolver:
    """Watches names on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watchers: dict[str, list[Callback]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, tuple[str, ...]] = {}
        self._unresolved: dict[
            str, None
        ] = {}  # names that have been looked up, and have no address
        self._pool = _LookupPool(loop)

    def unresolved(self, most: int) -> tuple[str, ...]:
        """Return names without an address, as far as look-ups have come; the first ones, at most so many."""
        return tuple(islice(self._unresolved, most))

    def watch(self, hostname: str, callback: Callback) -> None:
        """Call back with the addresses of a name, soon and after every change."""
        self._watchers.setdefault(hostname, []).append(callback)
        if hostname in self._known:  # soon, not now: the caller is in the middle of something
            self._loop.call_soon(self._notify, hostname, callback)
        elif hostname not in self._tasks:
            self._tasks[hostname] = self._loop.create_task(self._follow(hostname))

    def _notify(self, hostname: str, callback: Callback) -> None:
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
            self._unresolved.pop(hostname, None)
            task = self._tasks.pop(hostname, None)
            if task is not None:
                task.cancel()

    def close(self) -> None:
        """Stop all look-ups; those that hang are left to themselves."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._watchers.clear()
        self._known.clear()
        self._unresolved.clear()

    async def _follow(self, hostname: str) -> None:
        retry = RETRY
        suspect = False
        while True:
            flight = await self._pool.begin(hostname, suspect)
            await asyncio.wait({flight.landed}, timeout=DEADLINE)
            if suspect := not flight.landed.done():
                self._pool.on_overdue(flight)
                self._report(hostname, None)
                await asyncio.wait({flight.landed})
            answer = flight.landed.result()
            self._report(hostname, answer)
            await asyncio.sleep(INTERVAL if answer is not None else retry)
            retry = min(retry * 2, INTERVAL) if answer is None else RETRY

    def _report(self, hostname: str, answer: Answer) -> None:
        addresses = self._known.get(hostname, ()) if answer is None else answer
        if addresses:
            self._unresolved.pop(hostname, None)
        else:
            self._unresolved[hostname] = None
        if self._known.get(hostname) != addresses:
            self._known[hostname] = addresses
            for callback in list(self._watchers.get(hostname, ())):
                callback(hostname, addresses)


class _Flight:
    """One look-up under way; `landed` never has an exception and is never cancelled by who waits."""

    def __init__(self, landed: asyncio.Future[Answer], places: asyncio.Semaphore | None) -> None:
        self.landed = landed
        self.places = places  # where it has a place; None: it counts as overdue


class _LookupPool:
    """Lets look-ups begin: each in a thread of its own, which the process's end does not wait for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._flights: dict[str, _Flight] = {}
        self._places = asyncio.Semaphore(PLACES)
        self._suspects = asyncio.Semaphore(SUSPECTS)
        self._overdue = 0

    async def begin(self, hostname: str, suspect: bool) -> _Flight:
        """Begin a look-up when there is a place for it, or join the one that has not returned."""
        if hostname not in self._flights:
            places = self._suspects if suspect else self._places
            await places.acquire()
            flight = self._flights[hostname] = _Flight(self._loop.create_future(), places)
            self._start(hostname, flight)
        return self._flights[hostname]

    def on_overdue(self, flight: _Flight) -> None:
        """Give the place of a look-up that hangs to another name, as long as few hang."""
        if flight.places is self._places and self._overdue < OVERDUE:
            self._overdue += 1
            flight.places = None
            self._places.release()

    def _start(self, hostname: str, flight: _Flight) -> None:
        def land(answer: Answer) -> None:
            del self._flights[hostname]
            if flight.places is None:
                self._overdue -= 1
            else:
                flight.places.release()
            flight.landed.set_result(answer)

        def ask() -> None:
            answer: Answer = None
            try:
                answer = look_up(hostname)
            except (OSError, UnicodeError):
                pass  # None says so
            finally:
                try:
                    self._loop.call_soon_threadsafe(land, answer)
                except RuntimeError:
                    pass  # the loop is closed: nobody waits any more

        try:
            threading.Thread(target=ask, name=f"resolve {hostname}", daemon=True).start()
        except RuntimeError:  # no thread can be had now
            self._loop.call_soon(land, None)
