"""WorkerSlot: the place of one worker, through all its successors.

In: the ledger (what to send), the listeners (which sockets), the agent's phase. Out: a process that
has them, replaced within a second when it dies, with backoff when it dies young. The slot keeps the
counters' segment and the sockets, so a successor goes on where its predecessor stopped.
Level-triggered: `wake()` makes the slot compare what its worker has with what it should have.
Must never wait for a worker without a deadline: one that is silent is killed and replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import socket
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from edgefast.daemon.failure import explain_failure
from edgefast.proxy import messages
from edgefast.proxy.channel import Channel, ChannelClosed, ChannelError
from edgefast.proxy.dumps import Dumps
from edgefast.proxy.listeners import Seat
from edgefast.proxy.process import WorkerProcess
from edgefast.proxy.pulse import Pulse, read_process
from edgefast.proxy.reserve import RESERVE
from edgefast.proxy.settings import (
    ACK_DEADLINE,
    EXIT_SHORTAGE,
    PING_DEADLINE,
    PING_EVERY,
    STARTED_DEADLINE,
)
from edgefast.proxy.shop import Phase, Shop
from edgefast.proxy.stats import Segment

__all__ = ["WorkerSlot"]

log = logging.getLogger(__name__)

#: A worker that lived this long did not die of its start: its successor starts at once.
_SETTLED_LIFE = 10.0
_BACKOFF_FIRST = 0.1
_BACKOFF_MAX = 5.0
_BACKOFF_SERVED = 0.5
#: Places per message: half of what a worker keeps in reserve for them (worker.py).
_SOCKETS_PER_MESSAGE = 8
#: Labels of counters per message, each at most 183 bytes.
_LABELS_PER_MESSAGE = 256
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
    """See the module's text."""

    def __init__(self, number: int, shop: Shop, stat_rows: int) -> None:
        self.number = number
        self.segment = Segment(stat_rows)
        self.restarts = 0
        self.unresolved: tuple[str, ...] = ()  # names of backends
        self._shop = shop
        self._work = asyncio.Event()
        self._exit_ordered = False
        self._has_served = False  # the worker of this life, or of the last one between two lives
        self._forget_worker()

    def _forget_worker(self) -> None:
        """Start a life: nothing is known to the worker."""
        self._told_places: dict[Seat, int] = {}
        self._told_outlive = False
        self._told_phase: Phase = "serving"
        self._told_level = self._shop.log_level
        self._told_exit = False
        self._refused: list[tuple[str, str, str]] = []
        self._ack_due: float | None = None
        self._heard = 0.0
        self._old_rows: list[bytes] = []
        self._dumps = Dumps()
        self.connected = False
        self.drained = self.old_gone = False
        self.pid = 0
        self.connections = self.active = 0
        self.stores_down: tuple[tuple[str, str], ...] = ()  # places of counters, and why

    @property
    def serving(self) -> bool:
        """Whether the worker has taken in a table."""
        return self.connected and self._shop.ledger.held_by(self.number) is not None

    def wake(self) -> None:
        """Look again at what the worker should have."""
        self._work.set()

    def order_exit(self) -> None:
        """Tell the worker to abort what is left and go."""
        self._exit_ordered = True
        self.wake()

    def forget_rows(self, labels: Sequence[bytes]) -> None:
        """Let the worker give away these counters; one that does not come to it is asked again."""
        self._old_rows = list(labels)
        self.wake()

    async def run(self) -> None:
        """Keep a worker alive until the phase is `stopping` and the last one is gone."""
        loop = asyncio.get_running_loop()
        young = 0
        while True:
            began = loop.time()
            await self._live()
            if self._shop.stopping:
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
        self._shop.on_progress()

    async def _live(self) -> None:
        """Go through one worker's life."""
        try:
            process, ours = RESERVE.spare(self._start)
        except OSError as error:  # out of descriptors, or no Python to run: the next try waits
            log.error(
                "worker %d cannot be started: %s", self.number, explain_failure(error) or error
            )
            self._shop.on_progress()
            return
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
            # Its end of the channel is gone first: how it ends says whether its table is to blame.
            if not any(
                isinstance(one, _WorkerHung | ChannelError | TimeoutError) for one in leaves
            ):
                grace = _LAST_BREATH
        finally:
            status = await process.close(grace)
            channel.close()
            pid = self.pid
            self._dumps.fail()
            self._forget_worker()
            excused = not process.killed and status in _EXCUSED
            if self._shop.ledger.forget(self.number, excused=excused):
                self._shop.on_poison()
            self._shop.on_progress()
        if not self._shop.stopping:
            log.error("worker %d (pid %d) is gone, status %s: %s", self.number, pid, status, why)

    def _start(self) -> tuple[WorkerProcess, socket.socket]:
        """Start a process; raises OSError, with nothing left."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                return WorkerProcess(self._shop.command, theirs), ours
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
                raise ChannelError("worker did not begin with Started")
            shop = self._shop
            hello = messages.Hello(
                self.number, shop.arena.capacity, shop.log_level, shop.access_log
            )
            self._told_level = shop.log_level
            await channel.send(hello, (shop.arena.reader_fd, self.segment.fd, shop.limits.fd))
        self._heard = loop.time()
        self.connected = True
        self.wake()
        life.create_task(self._send(channel))
        life.create_task(self._check(channel))
        while True:
            message, descriptors = await channel.receive()
            for descriptor in descriptors:  # no word of a worker brings any
                os.close(descriptor)
            self._heard = loop.time()
            self._on_message(message)

    # --- from the worker ------------------------------------------------------------------------

    def _on_message(self, message: messages.WorkerMessage) -> None:
        match message:
            case messages.Refused(items):
                self._refused += items
            case messages.Taking():
                if self._ack_due is not None:
                    self._ack_due = self._heard + ACK_DEADLINE
            case messages.Ack(epoch, short):
                refused, self._refused = self._refused, []
                self._ack_due = None
                self._has_served = True
                try:
                    fresh = self._shop.ledger.on_ack(self.number, epoch, refused)
                except ValueError as error:
                    raise ChannelError(str(error)) from None
                if fresh:
                    self._shop.on_refused(fresh)
                if short:
                    self._shop.on_short({(type_, name) for type_, name, _ in refused})
                self.wake()
                self._shop.on_progress()
            case messages.SocketsLost(places):
                for place in places:
                    self._told_places.pop(place, None)
                asyncio.get_running_loop().call_later(_SOCKETS_AGAIN, self.wake)
            case messages.Pong(_, connections, active, unresolved):
                self.connections, self.active = connections, active
                if self.unresolved != unresolved:
                    self.unresolved = unresolved
                    self._shop.on_progress()
            case messages.DumpPart(number, data, last):
                self._dumps.on_part(number, data, last)
            case messages.Spans(batch):
                self._shop.on_spans(batch)
            case messages.Uncounted(down, crowded):
                self.stores_down = down
                self._shop.on_uncounted(crowded)
            case messages.OldGone():
                self.old_gone = True
                self._shop.on_progress()
            case messages.Drained():
                self.drained = True
                self._shop.on_progress()
            case messages.Started():
                raise ChannelError("worker started twice")

    async def dump(self, number: int) -> Any:
        """Return what `Engine.dump()` says in the worker.

        Raises ChannelClosed, ChannelError or TimeoutError.
        """
        if not self.connected:
            raise ChannelClosed("the worker is being replaced")
        answer = self._dumps.ask(number)
        self.wake()
        return await self._dumps.answered(number, answer)

    # --- to the worker --------------------------------------------------------------------------

    async def _send(self, channel: _AgentChannel) -> None:
        """Bring the worker up to date whenever woken."""
        asked: set[int] = set()
        while True:
            await self._work.wait()
            self._work.clear()
            async with asyncio.timeout(ACK_DEADLINE):
                await self._send_sockets(channel)
                await self._send_commit(channel)
                await self._send_closed(channel)
                await self._send_orders(channel)
                for number in self._dumps.numbers() - asked:
                    asked.add(number)
                    await channel.send(messages.DumpRequest(number))

    async def _send_sockets(self, channel: _AgentChannel) -> None:
        if self._shop.stopping:
            return
        missing = [
            (place, fd, serial)
            for place, fd, serial in self._shop.listeners.sockets_of(self.number)
            if self._told_places.get(place) != serial
        ]
        for start in range(0, len(missing), _SOCKETS_PER_MESSAGE):
            part = missing[start : start + _SOCKETS_PER_MESSAGE]
            places = tuple(place for place, _, _ in part)
            await channel.send(messages.Sockets(places), [fd for _, fd, _ in part])
            self._told_places.update((place, serial) for place, _, serial in part)

    async def _send_commit(self, channel: _AgentChannel) -> None:
        commit = self._shop.ledger.commit_for(self.number)
        if commit is None:
            return
        self._ack_due = asyncio.get_running_loop().time() + ACK_DEADLINE
        for part in messages.split_changes(commit.changes):
            await channel.send(part)
        await channel.send(messages.Commit(commit.epoch, commit.version))

    async def _send_closed(self, channel: _AgentChannel) -> None:
        """After the commit: the table that no longer names a port is on its way first."""
        if self._shop.stopping:
            return
        bound = {seat for seat, _, _ in self._shop.listeners.sockets_of(self.number)}
        gone = [seat for seat in self._told_places if seat not in bound]
        for part in _parts(gone, _SOCKETS_PER_MESSAGE):
            await channel.send(messages.CloseSockets(tuple(part)))
            for place in part:
                del self._told_places[place]

    async def _send_orders(self, channel: _AgentChannel) -> None:
        shop = self._shop
        if self._told_level != shop.log_level:
            self._told_level = shop.log_level
            await channel.send(messages.LogLevel(shop.log_level))
        if shop.outlive is not None and not self._told_outlive:
            self._told_outlive = True
            descriptor, words = shop.outlive
            await channel.send(words, [descriptor])
        rows, self._old_rows = self._old_rows, []
        for start in range(0, len(rows), _LABELS_PER_MESSAGE):
            labels = tuple(rows[start : start + _LABELS_PER_MESSAGE])
            await channel.send(messages.ForgetRows(labels))
        if self._told_phase != shop.phase:
            if self._told_phase == "serving":
                await channel.send(messages.Drain())
            if shop.stopping:
                await self._send_stop(channel)
            self._told_phase = shop.phase
        if self._exit_ordered and not self._told_exit:
            self._told_exit = True
            await channel.send(messages.Exit())

    async def _send_stop(self, channel: _AgentChannel) -> None:
        left = self._shop.left
        if left is None:
            await channel.send(messages.StopAccepting())
            return
        gone = [seat for seat in self._told_places if seat[:2] not in left]
        for part in _parts(gone, _SOCKETS_PER_MESSAGE):
            await channel.send(messages.CloseSockets(tuple(part)))
        await channel.send(messages.Leave(self._shop.patient))

    async def _check(self, channel: _AgentChannel) -> None:
        """Ask for a sign of life, and hold the worker to its deadlines."""
        loop = asyncio.get_running_loop()
        number, pulse = 0, Pulse()
        while True:
            with contextlib.suppress(TimeoutError):  # a full channel: nobody reads it
                async with asyncio.timeout(PING_EVERY):
                    await channel.send(messages.Ping(number := number + 1))
            await asyncio.sleep(PING_EVERY)
            RESERVE.fill()
            if self._ack_due is not None and loop.time() > self._ack_due:
                raise _WorkerHung(f"did not take in a table within {ACK_DEADLINE:g} s")
            if loop.time() - self._heard > PING_DEADLINE:
                raise _WorkerHung(f"silent for {PING_DEADLINE:g} s")
            has_work = self._ack_due is not None or bool(self._dumps)
            if why := pulse.look(read_process(self.pid), self._heard, has_work=has_work):
                raise _WorkerHung(f"frozen, {why}")


def _parts(items: Sequence[Seat], size: int) -> Iterable[Sequence[Seat]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterable[BaseException]:
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from _leaves(one)
        else:
            yield one
