"""Socket receiver: a starting process finds the serving processes, receives their sockets and replaces them.

In: the handover socket (rendezvous_socket.py) of a live agent, which transfers only to a process with
the take-over option, or of workers without an agent, which transfer to any.
Out: sockets in `Inherited`; when this process serves, the end of the old processes. Until then
nothing changes for them: they continue if this start fails.
Must never: take from another user's process, or let a start wait for a dead one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from pathlib import Path

import msgspec

from edgefast import __version__
from edgefast.proxy.control.channel import Channel, ChannelClosed, ChannelError
from edgefast.proxy.handover.frozen_workers import end_frozen
from edgefast.proxy.handover.protocol import PER_KEEP, PROTOCOL, Ask, Give, Keep, Kept, Refuse
from edgefast.proxy.handover.rendezvous_socket import RendezvousSocket, bound_path, connect, path_of
from edgefast.proxy.settings import ProxySettings
from edgefast.proxy.sockets.bind_address import Place
from edgefast.proxy.sockets.inherited import Inherited

__all__ = ["TakeOver", "TakeOverRefused"]

log = logging.getLogger(__name__)

#: Seconds for a predecessor to answer, and for workers of a dead agent to notice that they are alone.
_ANSWER = 5.0
#: Seconds for a predecessor to let go.
_LET_GO = 10.0
#: Predecessors: an agent, or its workers (at most 256); more is somebody's mistake.
_MOST = 256


class TakeOverRefused(Exception):
    """The process that serves does not give its sockets; the text says why and what to do."""


class _Predecessor:
    """One process that gives, while the conversation with it lasts."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._channel: Channel[Refuse | Give | Kept] = Channel(
            sock, msgspec.msgpack.Decoder(Refuse | Give | Kept)
        )
        self.given: Give | None = None

    async def ask(self, inherited: Inherited, *, take_over: bool) -> Refuse | None:
        """Receive what it gives. Raises ChannelClosed, ChannelError, TimeoutError."""
        question = Ask(
            protocol=PROTOCOL,
            release=__version__,
            pid=os.getpid(),
            take_over=take_over,
            manager=os.environ.get("NOTIFY_SOCKET", ""),
        )
        async with asyncio.timeout(_ANSWER):
            await self._channel.send(question)
            more = True
            while more:
                answer, descriptors = await self._channel.receive()
                if isinstance(answer, Refuse):
                    return answer
                if not isinstance(answer, Give) or len(answer.items) != len(descriptors):
                    for descriptor in descriptors:
                        os.close(descriptor)
                    raise ChannelError(
                        "the serving process did not hand over the sockets that it announced"
                    )
                for item, descriptor in zip(answer.items, descriptors, strict=True):
                    inherited.add(item.name, descriptor)
                self.given, more = answer, answer.more
        return None

    async def complete_handover(self, places: tuple[Place, ...]) -> None:
        """Tell it that `places` are served; returns when it accepts there no more."""
        try:
            async with asyncio.timeout(_LET_GO):
                for start in range(0, max(1, len(places)), PER_KEEP):
                    part = places[start : start + PER_KEEP]
                    await self._channel.send(Keep(places=part, more=start + PER_KEEP < len(places)))
                await self._channel.receive()
        except (ChannelClosed, ChannelError, TimeoutError) as error:
            # Its sockets are served here, so it takes nothing from anybody but time.
            log.warning(
                "take-over: the previous process did not confirm the end: %s", error or "too slow"
            )

    def close(self) -> None:
        self._sock.close()


class TakeOver:
    """Takes the sockets over from a running process and ends that process.

    `begin`, then `complete` once this process serves, `close` at the end.
    """

    def __init__(self, settings: ProxySettings, *, take_over: bool) -> None:
        self._path: Path | None = path_of(settings)
        self._take_over = take_over
        self._predecessors: list[_Predecessor] = []
        self.handover_socket: RendezvousSocket | None = None  # where this process will be found
        self.completed = asyncio.Event()

    async def begin(self, inherited: Inherited) -> None:
        """Collect the sockets of those that serve; raises TakeOverRefused."""
        try:
            await self._collect(inherited)
        except BaseException:
            self.close()
            raise
        if not self._predecessors:
            self.completed.set()
            if self._take_over:
                log.info("take-over: no running process found; starting normally")
        if self._path is None:
            return
        try:
            self.handover_socket = RendezvousSocket(self._path)
        except OSError as error:
            log.warning("take-over: another process cannot take over from this one: %s", error)

    async def _collect(self, inherited: Inherited) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + _ANSWER
        while self._path is not None and len(self._predecessors) < _MOST:
            sock = connect(self._path)
            if sock is None:
                return
            one = _Predecessor(sock)
            self._predecessors.append(one)
            try:
                refused = await one.ask(inherited, take_over=self._take_over)
            except (ChannelClosed, ChannelError, TimeoutError) as error:
                self._predecessors.remove(one)
                one.close()
                # An agent that just died: its workers will answer. Workers that died: nobody will.
                if isinstance(error, ChannelClosed) and loop.time() < end:
                    continue
                if isinstance(error, TimeoutError) and self._end_frozen():
                    return
                if not self._predecessors and self._take_over:
                    raise TakeOverRefused(
                        f"the serving process does not answer ({error or 'too slow'})"
                    ) from None
                return
            if refused is not None:
                self._predecessors.remove(one)
                one.close()
                if self._take_over:
                    raise TakeOverRefused(
                        f"process {refused.pid} refused to hand over: {refused.why}"
                    )
                return
            given = one.given
            assert given is not None
            who = (
                "edgefast"
                if given.worker < 0
                else f"worker {given.worker} without an agent of edgefast"
            )
            log.info("taking over from process %d (%s %s)", given.pid, who, given.release)
            if given.worker < 0 or len(self._predecessors) >= given.workers:
                return

    def _end_frozen(self) -> bool:
        """Rid connections of workers that nobody else will end."""
        assert self._path is not None
        answered = {one.given.pid for one in self._predecessors if one.given is not None}
        return bool(end_frozen(bound_path(self._path), answered))

    async def complete(self, places: tuple[Place, ...]) -> None:
        """Relieve those before: `places` are served now. Then this process is the one to be found."""
        async with asyncio.TaskGroup() as tasks:
            for one in self._predecessors:
                tasks.create_task(one.complete_handover(places))
        for one in self._predecessors:
            one.close()
        self._predecessors = []
        if self.handover_socket is not None:
            try:
                self.handover_socket.publish()
            except OSError as error:
                log.warning("take-over: another process cannot take over from this one: %s", error)
        self.completed.set()

    def close(self) -> None:
        """End all conversations: those before go on as if nothing had been."""
        for one in self._predecessors:
            one.close()
        self._predecessors = []
        if self.handover_socket is not None:
            self.handover_socket.close()
            self.handover_socket = None
