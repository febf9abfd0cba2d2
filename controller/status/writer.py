"""Writer: writes statuses to the API server, each object separately, only differences, only while leading.

In: a StatusTracker (the allowed statuses), present statuses from the watches, a patch function.
Out: JSON merge patches of `status` with the resourceVersion of their base. After a conflict, the
object is read and merged again. At most WRITES patches run at once. An object that keeps changing
is written ever less often, so that a thousand routes do not cost a thousand writes of their
Gateway.
Must never: write before the StatusTracker allows it, or while another replica leads.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from controller.status.shape import Json
from controller.status.tracker import Ref, StatusTracker
from controller.status.write_throttle import WriteThrottle

__all__ = ["Clock", "Conflict", "ObjectDeleted", "Present", "StatusApi", "Writer"]

log = logging.getLogger(__name__)

WRITES = 8  # under way at once
_TRIES = 5  # of one object after conflicts, before it waits like any failure
_PAUSE = 1.0  # seconds after a failure; they double
_PAUSE_MAX = 30.0
_SLICE = 20  # objects judged before others get a turn of the loop
#: Seconds after which what is new is looked at, whether or not its proxies have answered: until they have there is mostly nothing to say.
SOON = 0.02


class Present(msgspec.Struct, frozen=True):
    """An object's status as last seen: raw JSON, b"" when there is none; `ours`: what it says is our word."""

    resource_version: str
    status: bytes = b""
    ours: bool = True


class Conflict(Exception):
    """Somebody else has written the object meanwhile."""


class ObjectDeleted(Exception):
    """There is no such object any more."""


class StatusApi(Protocol):
    """What the writer needs of the API server and of the watches."""

    def present(self, ref: Ref) -> Present | None:
        """Return the object as the watches last saw it, None when it is not there."""

    async def read(self, ref: Ref) -> Present:
        """Read the object itself; raises Gone."""

    async def write(self, ref: Ref, resource_version: str, fields: Json) -> Present:
        """Write fields of the status; raises Conflict, Gone, or anything else to be tried again."""


class Clock(Protocol):
    """Time, twice."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def stamp(self) -> str:
        """Return the time as RFC 3339 text with seconds."""


class Writer:
    """Writes changed statuses to the API server while this replica leads.

    `run` is a task of the process.
    """

    def __init__(
        self,
        board: StatusTracker,
        api: StatusApi,
        clock: Clock,
        leading: Callable[[], bool],
        on_written: Callable[[Ref, Json, Json], None] = lambda ref, before, fields: None,
        on_failed: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`on_written` gets the status before and the fields written, `on_failed` a word for the metric."""
        self.board = board
        self._api = api
        self._clock = clock
        self._leading = leading
        self._on_written = on_written
        self._on_failed = on_failed
        self._dirty: dict[Ref, None] = {}  # in order
        self._soon: dict[Ref, None] = {}
        self._soon_ends = 0.0
        self._later: dict[Ref, float] = {}
        self._busy: set[Ref] = set()
        self._again: set[Ref] = set()  # marked while busy
        self._shown: set[Ref] = set()  # by the watches, while busy
        self._wake = asyncio.Event()
        self._spacing = WriteThrottle()
        self._pauses: dict[Ref, float] = {}
        #: What our own write made of an object, until the watch shows something newer than it was before.
        self._echo: dict[Ref, tuple[str, Present]] = {}
        self.writes = 0
        self.conflicts = 0

    def mark(self, refs: Iterable[Ref]) -> None:
        """Have objects looked at."""
        self._dirty.update(dict.fromkeys(refs))
        if self._dirty:
            self._wake.set()

    def mark_soon(self, refs: Iterable[Ref]) -> None:
        """Have objects looked at when `mark_now` is called, or in a moment."""
        if not self._soon:
            self._soon_ends = self._clock.monotonic() + SOON
        self._soon.update(dict.fromkeys(refs))
        if self._soon:
            self._wake.set()

    def mark_now(self) -> None:
        """Have those looked at that were to be looked at soon: proxies have answered."""
        soon, self._soon = self._soon, {}
        self.mark(soon)

    def see(self, ref: Ref) -> None:
        """Note that the watches show another status of an object; what we have just written needs no look."""
        if ref in self._busy:
            self._shown.add(ref)
            return
        echo, present = self._echo.get(ref), self._api.present(ref)
        if echo is None or present is None or not self.board.wants(ref):
            self.mark((ref,))
        elif present.resource_version == echo[1].resource_version:
            del self._echo[ref]
        else:
            self.mark((ref,))

    def mark_all(self) -> None:
        """Have every object looked at: this process leads from now on."""
        self._later.clear()
        self.mark(self.board.refs())

    @property
    def idle(self) -> bool:
        """True when nothing is to be looked at now, or soon."""
        return not self._dirty and not self._busy and not self._soon

    async def run(self) -> None:
        """Write until cancelled."""
        free = asyncio.Semaphore(WRITES)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wait()
                evaluated = 0
                while self._dirty and self._leading():
                    ref = next(iter(self._dirty))
                    del self._dirty[ref]
                    evaluated += 1
                    if evaluated % _SLICE == 0:
                        await asyncio.sleep(0)
                    try:
                        work = self._take(ref)
                    except Exception:  # a bug, or a status that no CRD allows: the others go on
                        log.exception("status of %s %s/%s cannot be computed", *ref)
                        work = None
                    if work is not None:
                        await free.acquire()
                        task = tasks.create_task(self._write(ref, *work))
                        task.add_done_callback(lambda _: free.release())
                if not self._leading():
                    self._dirty.clear()  # the next leader looks at everything; so do we if it is us

    async def _wait(self) -> None:
        now = self._clock.monotonic()
        self._collect(now)
        if self._dirty:
            return
        self._wake.clear()
        ends = [*self._later.values()]
        if self._soon:
            ends.append(self._soon_ends)
        if (soon := self.board.next_look(now)) > 0:
            ends.append(now + soon)
        wait = max(0.0, min(ends) - now) + 0.001 if ends else None
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            self.mark(self.board.look(self._clock.monotonic()))

    def _collect(self, now: float) -> None:
        """Move what has waited long enough to what is to be looked at."""
        due = [ref for ref, at in self._later.items() if at <= now]
        for ref in due:
            del self._later[ref]
            self._dirty[ref] = None
        if self._soon and self._soon_ends <= now:
            self.mark_now()

    def _take(self, ref: Ref) -> tuple[Present, Json] | None:
        """Check one object; return its kind and the fields to write, if any and if now."""
        if ref in self._busy:
            self._again.add(ref)
            return None
        if not self.board.is_ours(ref):
            return None
        present = self._see(ref)
        if present is None:
            self.board.forget(ref)  # gone, or not seen yet: the watch will tell
            return None
        now = self._clock.monotonic()
        if (wait := self._spacing.wait(ref, now)) > 0:
            self._later[ref] = min(self._later.get(ref, now + wait), now + wait)
            return None
        fields = self._evaluate(ref, present, now)
        if fields is None:
            return None
        self._busy.add(ref)
        return present, fields

    def _evaluate(self, ref: Ref, present: Present, now: float) -> Json | None:
        status: Json = msgspec.json.decode(present.status) if present.status else {}
        decision = self.board.judge(ref, status, now, self._clock.stamp(), ours=present.ours)
        if decision.again > 0:
            self._later[ref] = now + decision.again
        elif decision.fields is None:
            self.board.forget(ref)  # taken away, if that is what was wanted
        return decision.fields

    def _see(self, ref: Ref) -> Present | None:
        """Return the object as the watches show it, or as we have just written it."""
        seen = self._api.present(ref)
        echo = self._echo.get(ref)
        if echo is None:
            return seen
        if seen is not None and seen.resource_version == echo[0]:
            return echo[1]
        del self._echo[ref]
        return seen

    async def _write(self, ref: Ref, present: Present, fields: Json) -> None:
        try:
            await self._try(ref, present, fields)
            self._pauses.pop(ref, None)
        except ObjectDeleted:
            self.board.forget(ref)
        except Exception as error:
            self._on_failed(type(error).__name__)
            pause = self._pauses.get(ref, _PAUSE)
            self._pauses[ref] = min(pause * 2, _PAUSE_MAX)
            log.warning("status of %s %s/%s cannot be written: %s", *ref, error)
            self._later[ref] = self._clock.monotonic() + pause * random.uniform(0.5, 1.0)
        finally:
            self._busy.discard(ref)
            shown = ref in self._shown
            self._shown.discard(ref)
            if ref in self._again:
                self._again.discard(ref)
                self.mark((ref,))
            elif shown:
                self.see(ref)

    async def _try(self, ref: Ref, present: Present, fields: Json) -> None:
        for _ in range(_TRIES):
            if not self._leading():
                return
            seen = self._api.present(ref)
            try:
                written = await self._api.write(ref, present.resource_version, fields)
            except Conflict:
                self.conflicts += 1
                self._on_failed("conflict")
                present = await self._api.read(ref)
                again = self._evaluate(ref, present, self._clock.monotonic())
                if again is None:
                    return
                fields = again
                continue
            self.writes += 1
            self._spacing.note(ref, self._clock.monotonic())
            if seen is not None:
                self._echo[ref] = (seen.resource_version, written)
            before: Json = msgspec.json.decode(present.status) if present.status else {}
            self._on_written(ref, before, fields)
            return
        raise Conflict(f"other clients changed it {_TRIES} times meanwhile")
