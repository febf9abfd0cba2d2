"""Ports: binds, keeps and retries the sockets that the newest table requires.

In: the listeners of each new table.
Out: sockets in `Listeners`, the same ones in the service manager's store (fd_store.py), and a notice
when an earlier failed bind succeeds.
Must never: stop retrying a port that the table still requires.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from edgefast import ir
from edgefast.proxy.sockets.bind_address import show_bind_address
from edgefast.proxy.sockets.fd_store import FdStore
from edgefast.proxy.sockets.listeners import Listeners

__all__ = ["Ports"]

log = logging.getLogger(__name__)

#: Seconds between tries to bind what could not be bound: soon at first, since the usual cause is a
#: predecessor that is still closing.
_RETRY_FIRST = 0.1
_RETRY_MAX = 3.0


class Ports:
    """Binds the sockets of the newest table, and retries the ones that failed."""

    def __init__(
        self,
        listeners: Listeners,
        store: FdStore,
        served: Callable[[], Iterable[ir.Listener]],
        stopping: Callable[[], bool],
    ) -> None:
        self._listeners = listeners
        self._store = store
        self._served = served
        self._stopping = stopping
        self._unbound = asyncio.Event()
        self.server_sockets: dict[str, Sequence[int]] = {}  # of the operator's servers
        self.on_opened: Callable[[], None] = lambda: None
        self.on_problems: Callable[[], None] = lambda: None

    def follow(self) -> None:
        """Bind and let go as the listeners ask."""
        self._listeners.reconcile(self._served())
        self._keep()
        if self._listeners.problems:
            self._unbound.set()

    async def run(self) -> None:
        """Try again what could not be done, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._store.run())
            tasks.create_task(self._bind())

    async def _bind(self) -> None:
        """Try again what could not be bound, until it is or nobody asks for it any more."""
        delay = _RETRY_FIRST
        while True:
            await self._unbound.wait()
            await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_MAX)
            if self._stopping():
                return
            before = set(self._listeners.problems)
            opened = self._listeners.reconcile(self._served())
            for place in opened:
                log.info("now listening on %s", show_bind_address(place))
            if opened:
                self._keep()
                self.on_opened()
            if set(self._listeners.problems) != before:
                self.on_problems()
            if not self._listeners.problems:
                self._unbound.clear()
                delay = _RETRY_FIRST

    def _keep(self) -> None:
        """Let the service manager keep the sockets, for a restart."""
        by_port = self._listeners.descriptors_by_port()
        named: dict[str, Sequence[int]] = {f"port-{port}": fds for port, fds in by_port.items()}
        self._store.follow({**named, **self.server_sockets})
