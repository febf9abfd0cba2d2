"""Acknowledgement: reports to the publisher of a table which workers applied it.

In: the worker tables and the worker slots.
Out: whether each live worker applied the table before the deadline. A slower worker still gets the
table. Later publications do not wait for it until it has caught up, so a hung worker does not delay
the others.
Must never: wait without a deadline.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from edgefast.proxy.agent.shared_state import SharedState
from edgefast.proxy.agent.worker_slot import WorkerSlot
from edgefast.proxy.settings import ACK_DEADLINE, STARTED_DEADLINE

__all__ = ["Acknowledgement"]

log = logging.getLogger(__name__)

#: Deaths of every worker at start after which the first table is not waited for any longer.
_HOPELESS = 4
#: Seconds that a table waits for workers.
_PATIENCE = 2.0


class Acknowledgement:
    """Waits until each live worker has the newest table."""

    def __init__(
        self, shared: SharedState, slots: Sequence[WorkerSlot], is_poisoned: Callable[[], bool]
    ) -> None:
        """`is_poisoned`: whether workers died over the newest table."""
        self._shared = shared
        self._slots = slots
        self._is_poisoned = is_poisoned
        self._progress = asyncio.Event()
        self._late: dict[int, int] = {}  # processes that were not waited for, and at which epoch

    async def wait_for(self, epoch: int) -> bool:
        """Wait until every worker that lives is at `epoch`; at first, until every one lives."""
        first = self._shared.ledger.settled.epoch == 0
        try:
            async with asyncio.timeout(STARTED_DEADLINE + ACK_DEADLINE if first else _PATIENCE):
                while not self._is_at(epoch, everyone=first):
                    self._progress.clear()
                    await self._progress.wait()
            return not self._late
        except TimeoutError:
            for slot in self._slots:
                if slot.connected and not self._has(slot, epoch):
                    self._late.setdefault(slot.pid, epoch)
            return False

    def look(self) -> None:
        """Something has happened to a worker: look again."""
        if self._late:
            self._catch_up()
        self._progress.set()

    def _is_at(self, epoch: int, *, everyone: bool) -> bool:
        alive = [slot for slot in self._slots if slot.connected]
        if not alive or (everyone and len(alive) < len(self._slots)):
            # Nobody to wait for, or no hope: workers that die again and again before any table.
            hopeless = everyone and all(slot.restarts >= _HOPELESS for slot in self._slots)
            return self._shared.stopping or self._is_poisoned() or hopeless
        return all(self._has(slot, epoch) for slot in alive if slot.pid not in self._late)

    def _has(self, slot: WorkerSlot, epoch: int) -> bool:
        table = self._shared.ledger.held_by(slot.number)
        return table is not None and table.epoch >= epoch

    def _catch_up(self) -> None:
        """Wait for late workers again once they have what they were late with, or are gone."""
        alive = {slot.pid: slot for slot in self._slots if slot.connected}
        self._late = {
            pid: epoch
            for pid, epoch in self._late.items()
            if pid in alive and not self._has(alive[pid], epoch)
        }
        if not self._late:
            log.info("all workers have table %s now", self._shared.ledger.current.version[:8])
