"""WorkerUpdate: the messages that one worker process received, and the difference to its desired state.

In: the worker tables, the listeners and the commands of the phase (shared_state.py).
Out: messages, ordered so that a worker receives an object before any reference to it.
Level-triggered: the next `send` contains everything that is still missing.
Must never: repeat a message, except for data that the worker reported as lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from edgefast.proxy.agent.shared_state import Phase, SharedState
from edgefast.proxy.control import messages
from edgefast.proxy.control.channel import Channel
from edgefast.proxy.control.dumps import Dumps
from edgefast.proxy.settings import ACK_DEADLINE
from edgefast.proxy.sockets.bind_address import Seat

__all__ = ["WorkerUpdate"]

#: Places per message: half of what a worker keeps in reserve for them (worker/worker.py).
_SOCKETS_PER_MESSAGE = 8
#: Labels of counters per message, each at most 183 bytes.
_LABELS_PER_MESSAGE = 256

_AgentChannel = Channel[messages.WorkerMessage]


class WorkerUpdate:
    """Computes the messages that bring one worker up to date; one per life of a worker."""

    def __init__(self, number: int, shared: SharedState) -> None:
        self._number = number
        self._shared = shared
        self.ack_due: float | None = None  # loop time by which a table must have been taken in
        self.old_rows: list[bytes] = []  # labels of counters to give away
        self.lends: dict[
            tuple[str, int], None
        ] = {}  # clusters whose connections others wait for, who
        self.tokens: list[messages.Tokens] = []  # answers to the worker's requests
        self.dumps = Dumps()
        self._was_requested: set[int] = set()  # dumps
        self._places: dict[Seat, int] = {}
        self._keys: dict[tuple[str, str, str], int] = {}  # serials of what was told of sources
        self._phase: Phase = "serving"
        self._level = ""
        self._outlive = self._exit = False

    async def greet(self, channel: _AgentChannel, segment: int) -> None:
        """Say what a worker begins with; `segment` is the descriptor of its counters."""
        shared = self._shared
        hello = messages.Hello(
            self._number,
            shared.arena.capacity,
            shared.log_level,
            shared.access_log,
            shared.own_zone.given,
            shared.own_zone.node,
            shared.listeners.server_ports,
        )
        self._level = shared.log_level
        memories = (shared.limits.fd, shared.tickets.fd, shared.health.fd)
        await channel.send(hello, (shared.arena.reader_fd, segment, *memories))

    def extend(self, now: float) -> None:
        """Give it more time for a table: it says that it is taking it in."""
        if self.ack_due is not None:
            self.ack_due = now + ACK_DEADLINE

    def lost(self, places: Iterable[Seat]) -> None:
        """Tell of these sockets again: the worker had no room for them."""
        for place in places:
            self._places.pop(place, None)

    async def send(self, channel: _AgentChannel, *, exit_ordered: bool) -> None:
        """Bring the worker up to date. Raises TimeoutError, ChannelClosed and ChannelError."""
        async with asyncio.timeout(ACK_DEADLINE):
            await self._send_sockets(channel)
            await self._send_keys(channel)
            await self._send_commit(channel)
            await self._send_keys_gone(channel)
            await self._send_closed(channel)
            await self._send_orders(channel, exit_ordered=exit_ordered)
            while self.tokens:
                await channel.send(self.tokens.pop(0))
            while self.lends:
                cluster, to = next(iter(self.lends))
                del self.lends[cluster, to]
                await channel.send(messages.Lend(cluster, to))
            for number in self.dumps.numbers() - self._was_requested:
                self._was_requested.add(number)
                await channel.send(messages.DumpRequest(number))

    async def _send_sockets(self, channel: _AgentChannel) -> None:
        if self._shared.stopping:
            return
        missing = [
            (place, fd, serial)
            for place, fd, serial in self._shared.listeners.sockets_of(self._number)
            if self._places.get(place) != serial
        ]
        for start in range(0, len(missing), _SOCKETS_PER_MESSAGE):
            part = missing[start : start + _SOCKETS_PER_MESSAGE]
            places = tuple(place for place, _, _ in part)
            await channel.send(messages.Sockets(places), [fd for _, fd, _ in part])
            self._places.update((place, serial) for place, _, serial in part)

    async def _send_commit(self, channel: _AgentChannel) -> None:
        commit = self._shared.ledger.commit_for(self._number)
        if commit is None:
            return
        self.ack_due = asyncio.get_running_loop().time() + ACK_DEADLINE
        for part in messages.split_changes(commit.changes):
            await channel.send(part)
        await channel.send(messages.Commit(commit.epoch, commit.version))

    async def _send_keys(self, channel: _AgentChannel) -> None:
        """Before the commit: whoever begins to believe an issuer has its keys, where they are known."""
        for source, reported in list(self._shared.keys.items()):
            if self._keys.get(source) != reported.serial:
                self._keys[source] = reported.serial
                for part in messages.split_keys(*source, reported.data):
                    await channel.send(part)

    async def _send_keys_gone(self, channel: _AgentChannel) -> None:
        for source in [one for one in self._keys if one not in self._shared.keys]:
            del self._keys[source]
            await channel.send(messages.KeysGone(*source))

    async def _send_closed(self, channel: _AgentChannel) -> None:
        """After the commit: the table that no longer names a port is on its way first."""
        if self._shared.stopping:
            return
        bound = {seat for seat, _, _ in self._shared.listeners.sockets_of(self._number)}
        gone = [seat for seat in self._places if seat not in bound]
        for part in _parts(gone, _SOCKETS_PER_MESSAGE):
            await channel.send(messages.CloseSockets(tuple(part)))
            for place in part:
                del self._places[place]

    async def _send_orders(self, channel: _AgentChannel, *, exit_ordered: bool) -> None:
        shared = self._shared
        if self._level != shared.log_level:
            self._level = shared.log_level
            await channel.send(messages.LogLevel(shared.log_level))
        if shared.outlive is not None and not self._outlive:
            self._outlive = True
            descriptor, words = shared.outlive
            await channel.send(words, [descriptor])
        rows, self.old_rows = self.old_rows, []
        for start in range(0, len(rows), _LABELS_PER_MESSAGE):
            labels = tuple(rows[start : start + _LABELS_PER_MESSAGE])
            await channel.send(messages.ForgetRows(labels))
        if self._phase != shared.phase:
            if self._phase == "serving":
                await channel.send(messages.Drain())
            if shared.stopping:
                await self._send_stop(channel)
            self._phase = shared.phase
        if exit_ordered and not self._exit:
            self._exit = True
            await channel.send(messages.Exit())

    async def _send_stop(self, channel: _AgentChannel) -> None:
        left = self._shared.left
        if left is None:
            await channel.send(messages.StopAccepting())
            return
        gone = [seat for seat in self._places if seat[:2] not in left]
        for part in _parts(gone, _SOCKETS_PER_MESSAGE):
            await channel.send(messages.CloseSockets(tuple(part)))
        await channel.send(messages.Leave(self._shared.patient))


def _parts(items: Sequence[Seat], size: int) -> Iterable[Sequence[Seat]]:
    return (items[start : start + size] for start in range(0, len(items), size))
