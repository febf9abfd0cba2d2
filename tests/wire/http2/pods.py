"""Backends of HTTP/2 that come and go as pods do: on a loop of their own, in a thread.

In: starts, ends. Out: ports, what each was asked. A pod that ends tells its clients with GOAWAY, looks at nothing that comes behind it,
answers what came before, and closes. Must never close on a request that it has looked at.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from core.h2.backend import Ask, H2Backend, Link

CEILING = 60.0  # seconds, against hangs

_T = TypeVar("_T")


class Pod:
    """One backend; `held` are requests for /slow, which it answers when it ends."""

    def __init__(self) -> None:
        self.backend = H2Backend(self._answer)
        self.asked = 0
        self.held: list[Ask] = []
        self._last: dict[Link, int] = {}  # of those that were told GOAWAY: what is answered still
        self._answered: set[Ask] = set()
        self._ending = False

    @property
    def port(self) -> int:
        """Address of the admin server."""
        return self.backend.port

    def _answer(self, ask: Ask) -> None:
        if ask.stream > self._last.get(ask.link, ask.stream):
            return  # it may go to another one
        self.asked += 1
        if ask.value(":path") == "/slow" and not self._ending:
            self.held.append(ask)
            return
        self._reply(ask)

    def _reply(self, ask: Ask) -> None:
        ask.reply(ask.body)
        self._answered.add(ask)
        if self._ending:
            self._close_if_done(ask.link)

    def _close_if_done(self, link: Link) -> None:
        left = [one for one in link.asks.values() if one not in self._answered]
        if all(one.stream > self._last[link] or one.reset is not None for one in left):
            link.close()

    async def end(self) -> None:
        """Take nothing more, answer what there is, close."""
        self._ending = True
        self.backend.stop_listening()
        for link in self.backend.open:
            self._last[link] = max([*link.asks, 0])
            link.goes_away()
        for ask in self.held:
            self._reply(ask)
        for link in self.backend.open:
            self._close_if_done(link)
        async with asyncio.timeout(CEILING):
            while self.backend.open:
                self.backend.alone.clear()
                await self.backend.alone.wait()


class Pods:
    """Use as a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._all: list[Pod] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for pod in self._all:
            self._loop.call_soon_threadsafe(pod.backend.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CEILING)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run something on the loop of the pods."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CEILING)

    def start(self) -> Pod:
        """A pod more."""
        pod = Pod()
        self.run(pod.backend.start())
        self._all.append(pod)
        return pod

    def end(self, pod: Pod) -> None:
        """A pod less, when it is gone."""
        self.run(pod.end())
        self._all.remove(pod)
