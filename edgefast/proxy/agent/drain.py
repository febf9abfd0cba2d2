"""Drain: the ordered end. Readiness fails, workers still accept connections, accept queues are emptied, the process exits.

In: signals or a command of the control socket.
Out: the phase that all slots follow, and the exit status.

  0 s            readiness fails; answers contain `connection: close`; new connections are still accepted
  min drain      load balancers have reacted: workers empty the accept queues and close the sockets
  ... no connection is left, or the drain timeout ends: the rest is aborted and workers exit
If the sockets stay open elsewhere, accept queues stay as they are. If a service manager keeps the
sockets (sockets/fd_store.py), workers accept until the older connections have ended, at most for the
drain timeout. Clients therefore wait no longer than the next process needs to start. If a successor
serves the sockets already, accepting stops at once. A second signal ends the process immediately.
SIGHUP makes the source of tables read its files again.
Must never: close a socket while its queue holds connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator, Sequence

from edgefast.proxy.agent.shared_state import Phase, SharedState
from edgefast.proxy.agent.worker_slot import WorkerSlot
from edgefast.proxy.process.sd_notify import notify
from edgefast.proxy.settings import EXIT_GRACE, ProxySettings
from edgefast.proxy.sockets.bind_address import Place
from edgefast.proxy.sockets.listeners import Listeners

__all__ = ["LAST_REQUESTS", "Drain"]

log = logging.getLogger(__name__)

#: Seconds for requests that came until the last moment of a restart.
LAST_REQUESTS = 5.0


class Drain:
    """Drains the proxy and ends it: the phases, their times and the exit status."""

    def __init__(
        self,
        shared: SharedState,
        slots: Sequence[WorkerSlot],
        listeners: Listeners,
        settings: ProxySettings,
    ) -> None:
        self._shared = shared
        self._slots = slots
        self._listeners = listeners
        self._settings = settings
        self._min_drain = settings.min_drain
        self._ordered = asyncio.Event()
        self._progress = asyncio.Event()
        self._expected = False  # a signal that only repeats the order
        self._forced_by = 0
        self.relieved = False  # a successor serves
        self.on_hangup: Callable[[], None] = lambda: None
        self.sockets_stay: Callable[[], bool] = lambda: False  # with a service manager

    @property
    def phase(self) -> Phase:
        """Where the end stands; `serving` before it begins."""
        return self._shared.phase

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Let SIGTERM and SIGINT order the drain, and a second one force the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup_signal)
        loop.add_signal_handler(signal.SIGUSR1, _on_rotation_signal)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
                loop.remove_signal_handler(number)

    def _on_hangup_signal(self) -> None:
        log.info(
            "SIGHUP: reading the files now (edgefast also reads changed files without a signal)"
        )
        self.on_hangup()

    def _on_signal(self, number: int) -> None:
        if self._expected:
            self._expected = False
            log.info("%s ignored: the drain continues", signal.Signals(number).name)
        elif self.phase != "serving":
            self._forced_by = number
            self._progress.set()
        elif number == signal.SIGINT:
            # No load balancer watches a gateway that somebody stops by hand.
            self.order("SIGINT (send it again to stop immediately)", min_drain=0.0)
        else:
            self.order(signal.Signals(number).name)

    def order(self, why: str, min_drain: float | None = None, *, expected: bool = False) -> bool:
        """Begin to drain; False when it has begun before.

        `expected`: a signal follows that means the same, as after a pod's preStop hook.
        """
        self._expected |= expected
        if self.phase != "serving":
            return False
        if min_drain is not None:
            self._min_drain = min_drain
        most = max(self._min_drain, self._settings.drain_timeout)
        if self.relieved:
            log.info(
                "draining: %s; new connections are refused; the process ends after at most %g s",
                why,
                most,
            )
        else:
            log.info(
                "draining: %s; new connections are accepted for at least %g s; the process "
                "ends after at most %g s",
                why,
                self._min_drain,
                most,
            )
        notify("STOPPING=1")
        self._shared.phase = "draining"
        self._wake()
        self._ordered.set()
        return True

    def leave(self, kept: frozenset[Place], why: str) -> None:
        """Accept no more: a successor serves the queues of `kept`."""
        self.relieved = True
        self._shared.left = kept
        self.order(why, min_drain=0.0)
        self._progress.set()

    def on_progress(self) -> None:
        """Look again whether every worker is done."""
        self._progress.set()

    async def ended(self) -> int:
        """Wait for the order and carry it out; returns the exit status of the process."""
        await self._ordered.wait()
        loop = asyncio.get_running_loop()
        start = loop.time()
        end = start + max(self._min_drain, self._settings.drain_timeout)
        if await self._wait(start + self._min_drain, lambda: self.relieved):
            return self._force()
        if self.sockets_stay() and not self.relieved:
            if await self._wait(end, self._is_old_gone):
                return self._force()
            end = max(end, loop.time() + LAST_REQUESTS)
            if not self.relieved:
                self._shared.left, self._shared.patient = frozenset(self._listeners.places), False
        self._shared.phase = "stopping"
        # The workers' copies are the last ones from here on; each empties its queue, then closes.
        self._listeners.close()
        self._wake()
        if await self._wait(end, lambda: all(slot.drained for slot in self._slots)):
            return self._force()
        late = [slot for slot in self._slots if not slot.drained]
        if late:
            left = sum(slot.connections for slot in late)
            if left:
                log.warning(
                    "drain timeout reached: aborting the remaining connections (about %d)", left
                )
            else:
                log.info("drain timeout reached: ending workers without connections")
        for slot in self._slots:
            slot.order_exit()
        gone = loop.time() + EXIT_GRACE
        if await self._wait(gone, lambda: not any(slot.pid for slot in self._slots)):
            return self._force()
        log.info("drained")
        return 0

    def _is_old_gone(self) -> bool:
        return self.relieved or all(slot.old_gone for slot in self._slots)

    async def _wait(self, until: float, done: Callable[[], bool]) -> bool:
        """Wait for the loop's time `until` or for `done`; True when an end was forced."""
        loop = asyncio.get_running_loop()
        while not self._forced_by and not done() and loop.time() < until:
            self._progress.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._progress.wait()
            except TimeoutError:
                break
        return bool(self._forced_by)

    def _force(self) -> int:
        """End at once; the slots kill their workers when the agent's tasks are cancelled."""
        self._shared.phase = "stopping"
        log.warning("stopping immediately; requests in flight are aborted")
        return 128 + self._forced_by

    def _wake(self) -> None:
        for slot in self._slots:
            slot.wake()


def _on_rotation_signal() -> None:
    """What other servers want after a rotation; without a handler it would end this one."""
    log.info("SIGUSR1 ignored: edgefast reopens a renamed access log without a signal")
