"""Token verification: verifies new tokens in the loop while a turn has time, else one after the other.

In: jobs of verifiers (token_requirements.py), one for all requests with the same token; new keys.
Out: outcomes, at once or later; each job is answered once or cancelled. All waiting jobs are bounded in number, bytes and time: past the
bounds the outcome is "busy" (tokenqueue.py). One thread verifies what takes too long for the loop. It uses three calls of the loop only.
Must never: take longer in a turn than `BUDGET` and one token, or accept a token with a key that is no longer trusted.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from edgefast.auth.jwt.compact import Malformed, read_token
from edgefast.auth.jwt.outcome import Outcome
from edgefast.auth.jwt.signature import Check, is_signed
from edgefast.auth.jwt.token_check import Plan, look_over
from edgefast.core.engine import TokenCache
from edgefast.core.fastpath import ClientShare
from edgefast.core.policy.remotekeys import RemoteSet, RemoteSets, SourceId
from edgefast.core.policy.tokenqueue import QUEUE, TokenQueue

if TYPE_CHECKING:
    from edgefast.core.policy.token_requirements import Verifier

__all__ = ["BUDGET", "PARKED", "PATIENCE", "THREADED", "Loop", "VerifyRequest", "TokenVerifier"]

log = logging.getLogger(__name__)

#: Seconds of a turn of the loop that may go into verifying, and one token: everybody else waits so long, in each turn that their request takes. A
#: turn with nothing else in it is over in some ten microseconds: who floods gets what nobody else wants.
BUDGET = 0.00005
#: Tokens that the thread has before it, read and taken apart: enough to keep it busy. The others wait in turn.
THREADED = 4
#: Tokens that wait for keys, and the seconds that each may: strangers can make up names of keys.
PARKED = 512
PATIENCE = 2.0
_NICE = 19  # of the thread: whoever proves who it is has waited least


class Loop(Protocol):
    """What is known of an event loop; asyncio's and uvloop's are such."""

    def call_soon(self, callback: Callable[..., object], /, *args: object) -> object: ...
    def call_soon_threadsafe(self, callback: Callable[..., object], /, *args: object) -> object: ...
    def call_later(
        self, delay: float, callback: Callable[..., object], /, *args: object
    ) -> _Handle: ...


class _Handle(Protocol):
    def cancel(self) -> object: ...


class VerifyRequest:
    """What one request asks of one token."""

    __slots__ = ("_callback", "_job", "outcome")

    def __init__(self, callback: Callable[[Outcome], object]) -> None:
        self.outcome: Outcome | None = None  # None: not yet; the callback will be called
        self._callback: Callable[[Outcome], object] | None = callback
        self._job: Job | None = None

    def cancel(self) -> None:
        """Nobody wants to know any more: the callback is not called."""
        self._callback = None
        if self._job is not None:
            self._job.leave(self)
            self._job = None

    def refuse(self) -> None:
        """Too many ask about the same."""
        self.outcome, self._callback = Outcome("busy"), None

    def _answer(self, outcome: Outcome) -> None:
        callback, self._callback, self._job = self._callback, None, None
        self.outcome = outcome
        if callback is None:
            return
        try:
            callback(outcome)
        except Exception:
            log.exception("jwt: request failed after its token was verified")


class TokenVerifier:
    """All of a worker's."""

    def __init__(
        self,
        loop: Loop,
        ask: Callable[[SourceId], None],
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`ask`: tells the agent that keys of a source should be fetched now."""
        self.cache = TokenCache()
        self.remote: RemoteSets[Job] = RemoteSets(steady)
        self.clock = clock
        self.is_signed_slow: Check = (
            is_signed  # of the thread; whoever has one that lets others run says so
        )
        self._ask = ask
        self._loop = loop
        self._steady = steady
        self._shelves = count(1)
        self._queue: TokenQueue[Job] = TokenQueue()  # slow: those that the thread has no room for
        self._spent = 0.0  # of this turn
        self._turning = False
        self._parked = 0
        self._threaded = 0
        self._thread: threading.Thread | None = None
        self._tasks: SimpleQueue[tuple[Job, Plan] | None] = SimpleQueue()

    def new_cache_id(self) -> int:
        """Return a place in the cache for a verifier."""
        return next(self._shelves)

    @property
    def waiting(self) -> int:
        """How many tokens are on their way."""
        return self._queue.count + self._threaded + self._parked

    def close(self) -> None:
        """Let the thread go; nothing is asked any more."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread = None

    # --- a token ----------------------------------------------------------------------------------------------------

    def submit(
        self,
        verifier: Verifier,
        token: bytes,
        callback: Callable[[Outcome], object],
        client: bytes = b"",
    ) -> VerifyRequest:
        """Ask about a token that the cache does not know; `client`: the address that it comes from."""
        question = VerifyRequest(callback)
        job = verifier.jobs.get(token)
        if job is not None:
            if len(job.questions) < QUEUE:
                job.enter(question)
            else:
                question.refuse()
            return question
        job = Job(self, verifier, token, client)
        job.enter(question)
        job.quiet = True
        if not self._queue.ready and self._spent < BUDGET:
            self._work(job)
        elif not self._enqueue(job):
            self._settle(job, Outcome("busy"))
        job.quiet = False
        return question

    def _enqueue(self, job: Job, lane: ClientShare[Job] | None = None) -> bool:
        entered, gone = self._queue.enter(job, self._queue.ready if lane is None else lane)
        if self._queue.ready:
            self._turn_soon()
        for one in gone:  # not from within the request that is asking
            self._loop.call_soon(self._settle, one, Outcome("busy"))
        return entered

    def _turn_soon(self) -> None:
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turning = False
        self._spent = 0.0
        while self._queue.ready and self._spent < BUDGET:
            job = self._queue.take(self._queue.ready)
            if job.questions:
                self._work(job)
        if self._queue.ready:
            self._turn_soon()

    def _work(self, job: Job) -> None:
        began = self._steady()
        try:
            self._judge(job)
        except Exception:
            log.exception("jwt: a token could not be verified")
            self._settle(job, Outcome("malformed"))
        self._spent += self._steady() - began
        self._turn_soon()  # in which there is time again

    def _judge(self, job: Job) -> None:
        try:
            token = read_token(job.token)
        except Malformed:
            return self._settle(job, Outcome("malformed"))
        plan = look_over(token, job.verifier.providers, self.clock())
        if isinstance(plan, Outcome):
            return self._settle(job, plan)
        if not plan.slow:
            return self._conclude(job, plan, plan.try_keys())
        if self._threaded >= THREADED:
            if not self._enqueue(job, self._queue.slow):
                self._settle(job, Outcome("busy"))
            return None
        if self._thread is None:
            self._thread = threading.Thread(target=self._verify, name="tokens", daemon=True)
            self._thread.start()
        self._threaded += 1
        self._tasks.put((job, plan))
        return None

    def _conclude(self, job: Job, plan: Plan, outcome: Outcome) -> None:
        """Settle with an outcome, unless keys are on their way that may change it."""
        if outcome.word in ("kid", "keys") and self._parked < PARKED:
            now = self._steady()
            at_once = job.verifier.own_tokens and not job.waited
            awaited = [
                source
                for provider in plan.unknown
                if (source := job.verifier.sources.get(provider)) is not None
                and source.is_awaited(self._ask, now, at_once=at_once)
            ]
            if awaited and job.park(outcome, awaited, now):
                return
        if outcome.key is not None:
            self.cache.keep(job.verifier.cache_id, job.token, outcome, self.clock())
        self._settle(job, outcome)

    def _settle(self, job: Job, outcome: Outcome) -> None:
        questions, job.questions = job.questions, {}
        job.end()
        for question in questions:
            if job.quiet:  # its caller looks at it
                question.outcome = outcome
                question._callback = question._job = None
            else:
                question._answer(outcome)

    # --- the thread -------------------------------------------------------------------------------------------------

    def _verify(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while (task := self._tasks.get()) is not None:
            job, plan = task
            outcome: Outcome | None = None
            try:
                if job.questions:
                    outcome = plan.try_keys(self.is_signed_slow)
            except Exception:
                log.exception("jwt: a token could not be verified")
                outcome = Outcome("malformed")
            try:
                self._loop.call_soon_threadsafe(self._landed, job, plan, outcome)
            except RuntimeError:  # the loop is closed
                return

    def _landed(self, job: Job, plan: Plan, outcome: Outcome | None) -> None:
        self._threaded -= 1
        while self._queue.slow and self._threaded < THREADED:
            waiting = self._queue.take(self._queue.slow)
            if waiting.questions:
                self._work(waiting)
        if outcome is None or not job.questions:
            return
        if outcome.key is not None and not outcome.key.trusted:  # keys changed meanwhile
            if not self._enqueue(job):
                self._settle(job, Outcome("busy"))
            return
        self._conclude(job, plan, outcome)


class Job:
    """One token that is on its way, and all who wait for it."""

    __slots__ = (
        "_awaited",
        "_token_verifier",
        "_held",
        "_timer",
        "_until",
        "client",
        "ended",
        "questions",
        "quiet",
        "token",
        "verifier",
    )

    def __init__(
        self, token_verifier: TokenVerifier, verifier: Verifier, token: bytes, client: bytes
    ) -> None:
        self._token_verifier = token_verifier
        self.verifier = verifier
        self.token = token
        self.client = client  # of who asked first
        self.questions: dict[VerifyRequest, None] = {}
        self.quiet = False  # it is answered while it is submitted
        self.ended = False
        self._awaited: list[RemoteSet[Job]] = []
        self._held: Outcome | None = None  # what it is where no keys come
        self._timer: _Handle | None = None
        self._until = 0.0  # steady seconds; 0: it has not waited for keys yet
        verifier.jobs[token] = self

    @property
    def waited(self) -> bool:
        """It has waited for keys."""
        return self._until > 0.0

    def enter(self, question: VerifyRequest) -> None:
        """One more waits for it."""
        self.questions[question] = None
        question._job = self

    def leave(self, question: VerifyRequest) -> None:
        """One does not wait any more."""
        self.questions.pop(question, None)
        if not self.questions:
            self.end()

    def end(self) -> None:
        """It is settled, or nobody waits for it."""
        if self.ended:
            return
        self.ended = True
        self._unpark()
        if self.verifier.jobs.get(self.token) is self:
            del self.verifier.jobs[self.token]

    # --- waiting for keys -------------------------------------------------------------------------------------------

    def park(self, outcome: Outcome, sources: list[RemoteSet[Job]], now: float) -> bool:
        """Wait until one of these says something; False: it has waited long enough."""
        if self._until == 0.0:
            self._until = now + PATIENCE
        if now >= self._until:
            return False
        self._held, self._awaited = outcome, sources
        for source in sources:
            source.waiting[self] = None
        self._token_verifier._parked += 1
        self._timer = self._token_verifier._loop.call_later(self._until - now, self._on_late)
        return True

    def on_keys(self) -> None:
        """A source said something."""
        if self._unpark() and not self._token_verifier._enqueue(self):
            self._token_verifier._settle(self, Outcome("busy"))

    def _on_late(self) -> None:
        held = self._held
        if self._unpark() and held is not None:
            self._token_verifier._settle(self, held)

    def _unpark(self) -> bool:
        if self._timer is None:
            return False
        self._timer.cancel()
        self._timer = self._held = None
        self._token_verifier._parked -= 1
        awaited, self._awaited = self._awaited, []
        for source in awaited:
            source.waiting.pop(self, None)
        return True
