"""Stream: one proxy's call, from its first message to its end: reads, writes and deadlines around a `Session`.

In: an authenticated call.
Out: the fleet's table and its changes, batch after batch; answers to `Fleets`. Each stream has one
message in memory and waits only for its own proxy.
Must never: write without a deadline, outlive its credential, or send before the credential was
checked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from time import monotonic

import msgspec

from controller.xds_server.auth_interface import Admission, admit_request
from controller.xds_server.fleets import Fleet, Fleets
from controller.xds_server.limits import ANSWER_DEADLINE, OPENING_DEADLINE, WRITE_DEADLINE
from controller.xds_server.refusal import Refused
from controller.xds_server.session import Phase, SentState, Session
from controller.xds_server.transport import Call
from edgefast.table.format import table_format
from edgefast.xds.rejections import Refused as Refusal

__all__ = ["Counts", "Deadlines", "Stream"]


class Counts(msgspec.Struct):
    """What all streams of a server have done since it started."""

    streams: int = 0  # open now
    opened: int = 0
    batches: int = 0
    messages: int = 0
    bytes: int = 0
    resources: int = 0  # put or removed
    acks: int = 0  # commits answered without a refusal
    nacks: int = 0  # commits answered with one
    refused_resources: int = 0
    mismatches: int = 0


class Deadlines(msgspec.Struct, frozen=True):
    """Seconds; see limits.py."""

    opening: float = OPENING_DEADLINE
    write: float = WRITE_DEADLINE
    answer: float = ANSWER_DEADLINE


class Stream:
    """Runs one proxy's stream: reads, writes and deadlines around a `Session`.

    A `fleets.Follower`.
    """

    def __init__(
        self,
        call: Call,
        admission: Admission,
        fleets: Fleets,
        counts: Counts,
        deadlines: Deadlines,
        clock: Callable[[], float],
        on_acked: Callable[[str, float], None],
    ) -> None:
        """`clock`: Unix time; `on_acked`: fleet, and seconds from a batch's first message to its answer."""
        self._call = call
        self._admission = admission
        self._fleets = fleets
        self._counts = counts
        self._deadlines = deadlines
        self._clock = clock
        self._on_acked = on_acked
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()
        self._refused: Refused | None = None  # why the stream has to end
        self._refusals: tuple[Refusal, ...] = ()  # in the last answer to a commit
        self._began = 0.0  # the batch that is under way
        self._tickets = b""  # the last message with keys of session tickets

    # --- for the fleet and the server -----------------------------------------------------------

    @property
    def admission(self) -> Admission:
        """What the credential allows."""
        return self._admission

    def wake(self) -> None:
        """See `Follower`."""
        self._woken.set()

    def end(self, refused: Refused) -> None:
        """See `Follower`."""
        if self._refused is None:
            self._refused = refused
            self._ending.set()

    # --- the call -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the call to its end; returns when the proxy ends it, raises Refused when we do."""
        fleet = self._fleets.find(self._admission.fleet)
        session = Session(fleet.history, (table_format(),))
        loop = asyncio.get_running_loop()
        left = max(0.0, self._admission.expires - self._clock())
        expired = Refused("expired", "UNAUTHENTICATED", "the credential has expired")
        timer = loop.call_later(left, self.end, expired)
        self._counts.streams += 1
        self._counts.opened += 1
        try:
            async with asyncio.TaskGroup() as tasks:
                ending = tasks.create_task(self._await_end())
                writing = tasks.create_task(self._write(fleet, session))
                await self._read(fleet, session)
                ending.cancel()
                writing.cancel()
        except ExceptionGroup as group:
            raise _first(group) from None
        finally:
            timer.cancel()
            self._counts.streams -= 1
            if session.node is not None:
                self._fleets.leave(fleet, session.node.id, self)

    async def _await_end(self) -> None:
        await self._ending.wait()
        if self._refused is not None:
            raise self._refused

    async def _read(self, fleet: Fleet, session: Session) -> None:
        try:
            async with asyncio.timeout(self._deadlines.opening):
                while session.phase is Phase.OPENING:
                    data = await self._call.read()
                    if data is None:
                        message = "the peer ended the stream before the opening was complete"
                        raise Refused("protocol", "INVALID_ARGUMENT", message)
                    await self._receive(fleet, session, data)
        except TimeoutError:
            raise Refused("slow", "DEADLINE_EXCEEDED", "the opening took too long") from None
        while (data := await self._call.read()) is not None:
            await self._receive(fleet, session, data)

    async def _receive(self, fleet: Fleet, session: Session, data: bytes) -> None:
        request = await admit_request(self._admission, data)
        before = session.phase
        try:
            reported = session.receive(request)
        except Refused as refused:
            if refused.cause == "format" and session.node is not None:
                self._fleets.turn_away(fleet, session.node.id, session.serves, refused.message)
            raise
        if reported is None:
            return
        assert session.node is not None
        node = session.node.id
        if before is Phase.OPENING:
            self._fleets.follow(fleet, node, self)
        else:
            self._count_answer(fleet, session, before, reported)
        self._fleets.tell(fleet, node, reported.version, reported.refused, reported.troubles)
        self.wake()

    def _count_answer(self, fleet: Fleet, session: Session, before: Phase, told: SentState) -> None:
        """A repeated answer to a commit with other proxy problems is not a new answer."""
        again = before is not Phase.WAITING and told.refused == self._refusals
        self._refusals = told.refused
        if again:
            return
        counts = self._counts
        if session.phase is Phase.OVER:
            counts.mismatches += 1
        elif told.refused:
            counts.nacks += 1
            counts.refused_resources += len(told.refused)
        else:
            counts.acks += 1
        if before is Phase.WAITING:
            self._on_acked(fleet.name, monotonic() - self._began)

    async def _write(self, fleet: Fleet, session: Session) -> None:
        while True:
            self._woken.clear()
            if self._wants_tickets(fleet, session):
                await self._admission.check()
                self._tickets = fleet.tickets
                await self._write_message(self._tickets)
                continue
            if session.due:
                await self._admission.check()
            batch = session.take()
            if batch is not None:
                await self._send(session, batch)
                continue
            if session.phase is not Phase.OPENING:
                self._fleets.rest(fleet, self)
            try:
                async with asyncio.timeout(self._patience(session)):
                    await self._woken.wait()
            except TimeoutError:
                if self._patience(session) == 0:
                    message = "the answer to a commit did not arrive in time"
                    raise Refused("slow", "DEADLINE_EXCEEDED", message) from None

    def _patience(self, session: Session) -> float | None:
        """Seconds for which the answer may still take; None when none is waited for."""
        if session.phase not in (Phase.WAITING, Phase.OVER):
            return None
        return max(0.0, self._began + self._deadlines.answer - monotonic())

    async def _send(self, session: Session, batch: Iterator[bytes]) -> None:
        counts = self._counts
        before = session.resources_sent
        for data in batch:
            await self._write_message(data)
        self._began = monotonic()  # the answer's time begins when all is sent
        counts.batches += 1
        counts.resources += session.resources_sent - before

    async def _write_message(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._deadlines.write):
                await self._call.write(data)
        except TimeoutError:
            message = "the proxy does not read its messages"
            raise Refused("slow", "DEADLINE_EXCEEDED", message) from None
        self._counts.messages += 1
        self._counts.bytes += len(data)

    def _wants_tickets(self, fleet: Fleet, session: Session) -> bool:
        """Between two batches: the keys of session tickets are others than those that were sent."""
        node = session.node
        ready = session.phase in (Phase.IDLE, Phase.WAITING) and node is not None and node.tickets
        return ready and fleet.tickets != self._tickets


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Return what ended a stream: a refusal if there is one among the errors."""
    leaves: list[Exception] = []
    todo: list[Exception] = [group]
    while todo:
        one = todo.pop()
        if isinstance(one, ExceptionGroup):
            todo.extend(one.exceptions)
        else:
            leaves.append(one)
    return next((one for one in leaves if isinstance(one, Refused)), leaves[0])
