"""WorkerSlot: one worker position, with the successive processes that fill it.

In: the worker tables (what to send), the listeners (which sockets), the agent's phase.
Out: a process that has both. A dead worker is replaced within a second; one that died soon after
its start is replaced with backoff. The slot keeps the counters' segment and the sockets, so a
replacement continues from the state of the previous worker. Level-triggered: `wake()` makes the
slot compare the worker's actual and desired state (worker_update.py).
Must never: wait for a worker without a deadline; a silent worker is killed and replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from edgefast.daemon.os_error import explain_failure
from edgefast.proxy.agent.shared_state import SharedState
from edgefast.proxy.agent.worker_process import WorkerProcess
from edgefast.proxy.agent.worker_update import WorkerUpdate
from edgefast.proxy.control import messages
from edgefast.proxy.control.channel import Channel, ChannelClosed, ChannelError
from edgefast.proxy.metrics.stats import Segment
from edgefast.proxy.process.reserved_descriptors import RESERVE
from edgefast.proxy.process.watchdog import Watchdog, read_process
from edgefast.proxy.settings import (
    ACK_DEADLINE,
    EXIT_SHORTAGE,
    PING_DEADLINE,
    PING_EVERY,
    STARTED_DEADLINE,
)
from edgefast.rate_limit.store_status import StoreStatus

__all__ = ["WorkerSlot", "request_from_others"]

log = logging.getLogger(__name__)

#: A worker that lived this long did not die of its start: its successor starts at once.
_SETTLED_LIFE = 10.0
_BACKOFF_FIRST = 0.1
_BACKOFF_MAX = 5.0
_BACKOFF_SERVED = 0.5
#: Seconds until sockets that found no room in a worker are sent again.
_SOCKETS_AGAIN = 0.5
#: Ends that have another reason than the table that the worker was taking in.
_EXCUSED = {
    EXIT_SHORTAGE,
    *(-one for one in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)),
}

#: Seconds for a worker that let go of its channel to be gone.
_LAST_BREATH = 2.0

_AgentChannel = Channel[messages.WorkerMessage]


class _WorkerLost(Exception):
    """The worker must be replaced; the text says why."""


class _WorkerHung(_WorkerLost):
    """It is alive, and does not do what it should."""


class WorkerSlot:
    """Starts one worker, and a new one each time it ends."""

    def __init__(self, number: int, shared: SharedState, stat_rows: int) -> None:
        self.number = number
        self.segment = Segment(stat_rows)
        self.restarts = 0
        self.unresolved: tuple[str, ...] = ()  # names of backends
        self.standing = StoreStatus()  # of the store of counters, until a successor knows better
        self._shared = shared
        self._work = asyncio.Event()
        self._exit_ordered = False
        self._has_served = False  # the worker of this life, or of the last one between two lives
        self._unstarted = ""  # what kept the last try from starting one
        self._forget_worker()

    def _forget_worker(self) -> None:
        """Start a life: nothing is known to the worker."""
        self._update = WorkerUpdate(self.number, self._shared)
        self._refused: list[tuple[str, str, str]] = []
        self._has_received = 0.0
        self.connected = False
        self.drained = self.old_gone = False
        self.pid = 0
        self.tls = ""  # its TLS library, as it says itself
        self.connections = self.active = 0

    @property
    def serving(self) -> bool:
        """Whether the worker has taken in a table."""
        return self.connected and self._shared.ledger.held_by(self.number) is not None

    def wake(self) -> None:
        """Look again at what the worker should have."""
        self._work.set()

    def order_exit(self) -> None:
        """Tell the worker to abort what is left and go."""
        self._exit_ordered = True
        self.wake()

    def forget_rows(self, labels: Sequence[bytes]) -> None:
        """Let the worker give away these counters; one that does not come to it is asked again."""
        self._update.old_rows = list(labels)
        self.wake()

    def release_connections(self, cluster: str, to: int) -> None:
        """Have the worker give up connections for others."""
        self._update.lends[cluster, to] = None
        self.wake()

    async def run(self) -> None:
        """Keep a worker alive until the phase is `stopping` and the last one is gone."""
        loop = asyncio.get_running_loop()
        young = 0
        while True:
            began = loop.time()
            await self._live()
            if self._shared.stopping:
                break
            self.restarts += 1
            young = 0 if loop.time() - began >= _SETTLED_LIFE else young + 1
            # The first replacement is immediate. Workers that die of their start are held back;
            # ones that served are always back within a second, whatever it was that killed them.
            most = _BACKOFF_SERVED if self._has_served else _BACKOFF_MAX
            delay = 0.0 if young <= 1 else min(_BACKOFF_FIRST * 2 ** (young - 2), most)
            if delay:
                await asyncio.sleep(delay * random.uniform(0.5, 1.0))
        self.drained = True
        self._shared.on_progress()

    async def _live(self) -> None:
        """Go through one worker's life."""
        try:
            process, ours = RESERVE.spare(self._start)
        except OSError as error:  # out of descriptors, or no Python to run: the next try waits
            message = str(explain_failure(error) or error)
            if message != self._unstarted:  # once for as long as it lasts
                log.error("worker %d cannot be started: %s; retrying", self.number, message)
            self._unstarted = message
            self._shared.on_progress()
            return
        if self._unstarted:
            self._unstarted = ""
            log.info("worker %d: restarting", self.number)
        channel: _AgentChannel = Channel(ours, msgspec.msgpack.Decoder(messages.WorkerMessage))
        why = ""
        grace = 0.0
        try:
            self._forget_worker()
            self._has_served = False
            self.pid = process.pid
            async with asyncio.TaskGroup() as life:
                life.create_task(self._watch(process))
                life.create_task(self._talk(channel, life))
        except* (_WorkerLost, ChannelClosed, ChannelError, TimeoutError, OSError) as group:
            leaves = list(_leaves(group))
            why = "; ".join(dict.fromkeys(str(one) or type(one).__name__ for one in leaves))
            # Its end of the channel closes first; the exit status shows whether its table is the cause.
            if not any(
                isinstance(one, _WorkerHung | ChannelError | TimeoutError) for one in leaves
            ):
                grace = _LAST_BREATH
        finally:
            status = await process.close(grace)
            channel.close()
            pid = self.pid
            self._update.dumps.fail()
            self._shared.health.forget(self.number)
            self._forget_worker()
            excused = not process.killed and status in _EXCUSED
            if self._shared.ledger.forget(self.number, excused=excused):
                self._shared.on_poison()
            self._shared.on_progress()
        if not self._shared.stopping:
            log.error("worker %d (pid %d) ended, status %s: %s", self.number, pid, status, why)

    def _start(self) -> tuple[WorkerProcess, socket.socket]:
        """Start a process; raises OSError, with nothing left."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                return WorkerProcess(self._shared.command, theirs), ours
            except BaseException:
                ours.close()
                raise

    async def _watch(self, process: WorkerProcess) -> None:
        status = await process.exited()
        raise _WorkerLost(f"killed by signal {-status}" if status < 0 else f"exited with {status}")

    async def _talk(self, channel: _AgentChannel, life: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(STARTED_DEADLINE):
            first, _ = await channel.receive()
            if not isinstance(first, messages.Started):
                raise ChannelError("the first message of the worker was not Started")
            self.tls = first.tls
            await self._update.greet(channel, self.segment.fd)
        self._has_received = loop.time()
        self.connected = True
        self.wake()
        life.create_task(self._send(channel))
        life.create_task(self._check(channel))
        while True:
            message, descriptors = await channel.receive()
            for descriptor in descriptors:  # no word of a worker brings any
                os.close(descriptor)
            self._has_received = loop.time()
            self._on_message(message)

    # --- from the worker ------------------------------------------------------------------------

    def _on_message(self, message: messages.WorkerMessage) -> None:
        match message:
            case messages.Refused(items):
                self._refused += items
            case messages.Taking():
                self._update.extend(self._has_received)
            case messages.Ack(epoch, short):
                refused, self._refused = self._refused, []
                self._update.ack_due = None
                self._has_served = True
                try:
                    fresh = self._shared.ledger.on_ack(self.number, epoch, refused)
                except ValueError as error:
                    raise ChannelError(str(error)) from None
                if fresh:
                    self._shared.on_refused(fresh)
                if short:
                    self._shared.on_short({(type_, name) for type_, name, _ in refused})
                self.wake()
                self._shared.on_progress()
            case messages.SocketsLost(places):
                self._update.lost(places)
                asyncio.get_running_loop().call_later(_SOCKETS_AGAIN, self.wake)
            case messages.Pong(_, connections, active, unresolved):
                self.connections, self.active = connections, active
                if self.unresolved != unresolved:
                    self.unresolved = unresolved
                    self._shared.on_progress()
            case messages.DumpPart(number, data, last):
                self._update.dumps.on_part(number, data, last)
            case messages.Spans(batch):
                self._shared.on_spans(batch)
            case messages.Uncounted(standing):
                self.standing = standing or self.standing
                self._shared.on_uncounted(message)
            case messages.KeysWanted(uri, cluster, issuer):
                self._shared.on_keys_wanted((uri, cluster, issuer))
            case messages.TokensWanted():
                self._shared.on_tokens_wanted(
                    self._update, message, self._answer_tokens(self._update)
                )
            case messages.CancelTokens(number):
                self._shared.on_cancel_tokens(self._update, number)
            case messages.ConnectionsWanted(cluster):
                self._shared.on_connections_wanted(self.number, cluster)
            case messages.OldGone():
                self.old_gone = True
                self._shared.on_progress()
            case messages.Drained():
                self.drained = True
                self._shared.on_progress()
            case messages.Started():
                raise ChannelError("worker started twice")

    def _answer_tokens(self, update: WorkerUpdate) -> Callable[[messages.Tokens], None]:
        """Return the way back to the worker of this life; a successor gets none of its answers."""

        def answer(tokens: messages.Tokens) -> None:
            if update is self._update:
                update.tokens.append(tokens)
                self.wake()

        return answer

    async def dump(self, number: int) -> Any:
        """Return what `Engine.dump()` says in the worker.

        Raises ChannelClosed, ChannelError or TimeoutError.
        """
        if not self.connected:
            raise ChannelClosed("the worker is being replaced")
        answer = self._update.dumps.ask(number)
        self.wake()
        return await self._update.dumps.answered(number, answer)

    # --- to the worker --------------------------------------------------------------------------

    async def _send(self, channel: _AgentChannel) -> None:
        """Bring the worker up to date whenever woken."""
        while True:
            await self._work.wait()
            self._work.clear()
            await self._update.send(channel, exit_ordered=self._exit_ordered)

    async def _check(self, channel: _AgentChannel) -> None:
        """Ask for a sign of life, and hold the worker to its deadlines."""
        loop = asyncio.get_running_loop()
        number, watchdog = 0, Watchdog()
        while True:
            with contextlib.suppress(TimeoutError):  # a full channel: nobody reads it
                async with asyncio.timeout(PING_EVERY):
                    await channel.send(messages.Ping(number := number + 1))
            await asyncio.sleep(PING_EVERY)
            RESERVE.fill()
            if self._update.ack_due is not None and loop.time() > self._update.ack_due:
                raise _WorkerHung(f"did not apply a table within {ACK_DEADLINE:g} s")
            if loop.time() - self._has_received > PING_DEADLINE:
                raise _WorkerHung(f"did not answer for {PING_DEADLINE:g} s")
            has_work = self._update.ack_due is not None or bool(self._update.dumps)
            if why := watchdog.look(read_process(self.pid), self._has_received, has_work=has_work):
                raise _WorkerHung(f"frozen, {why}")


def request_from_others(slots: Iterable[WorkerSlot], wanted_by: int, cluster: str) -> None:
    """Have all workers but one give up connections of a cluster."""
    for slot in slots:
        if slot.number != wanted_by:
            slot.release_connections(cluster, wanted_by)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterable[BaseException]:
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from _leaves(one)
        else:
            yield one
