"""Passwords: the threads of a worker for slow password hashes.

A Python thread computes bcrypt. A thread that never holds the interpreter (csrc/tls/hasher.h)
computes $apr1$, which is a thousand times as quick. A thread of the lowest priority that held the
interpreter would delay the whole worker.
In: hashes, passwords. Out: whether they match, by a call on the loop. Bounds: QUEUE jobs wait,
SHARE of them of one client. Clients are served in turn. When the queue is full, the client with
most jobs loses one for a client with fewer. Wrong guesses of a few addresses therefore block no
other client. KNOWN correct pairs are stored as a keyed digest and do not wait.
Must never: keep a password after its job, or report a wrong one sooner.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Protocol

from edgefast.auth.htpasswd import is_apr1, verify, work_of
from edgefast.core.fastpath import ClientShare

__all__ = ["KNOWN", "QUEUE", "SHARE", "Passwords"]

#: Jobs that wait at most, of all clients and of one.
QUEUE = 64
SHARE = 8
#: Of these, jobs that a thread has: one that it tries, and the next one.
AHEAD = 2
#: Pairs that are known to be right.
KNOWN = 4096
_NICE = 19  # whoever proves who it is has waited least

_log = logging.getLogger(__name__)


class Asker(Protocol):
    """Whoever waits for a password; on the loop."""

    def complete_auth(self, job: Job, user: bytes) -> None:
        """The password is this user's, b"": it is wrong."""

    def refuse_auth(self, job: Job) -> None:
        """The password is not verified: another client has its turn, or no thread is available."""


class Hasher(Protocol):
    """A thread that tries $apr1$; answers come in the order of their questions."""

    def fileno(self) -> int: ...
    def submit(self, kept: bytes, password: bytes) -> None: ...
    def take(self) -> list[bool]: ...


class Job:
    """One password that is being tried."""

    __slots__ = ("flow", "at", "client", "hashes", "kept", "password", "proof", "right", "user")

    def __init__(
        self,
        kept: bytes,
        hashes: Sequence[bytes],
        password: bytes,
        client: bytes,
        flow: Any,
        user: bytes,
        proof: bytes,
    ) -> None:
        self.kept = kept
        self.hashes = hashes
        self.at = 0  # of the hash that is tried
        self.password = password
        self.client = client
        self.flow: Asker | None = flow
        self.user = user
        self.proof = proof
        self.right = False


class Passwords:
    """The slow hashes of one worker. `loop` runs in the thread that calls all but `_run`; `make_hasher` None: one thread makes all hashes."""

    def __init__(
        self,
        loop: Any,
        check: Callable[[bytes, bytes], bool] = verify,
        make_hasher: Callable[[], Hasher] | None = None,
    ) -> None:
        self._loop = loop
        self._check = check
        self._make_hasher = make_hasher
        self._hasher: Hasher | None = None
        self._hashing: deque[Job] = deque()  # what the native thread has
        self._native: ClientShare[Job] = ClientShare()  # what waits for it
        self._slow: ClientShare[Job] = ClientShare()  # what waits for Python's
        self._begun = 0  # jobs that Python's has
        self._secret = os.urandom(32)
        self._known: dict[bytes, None] = {}
        self._jobs: deque[Job] = deque()
        self._waiting: Counter[bytes] = Counter()
        self.count = 0  # jobs that are not over
        self._wake = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._closed = False
        #: Of which hashes (whether $apr1$) it was said that there is no thread for them.
        self._told: set[bool] = set()

    def digest(self, kept: bytes, pair: bytes) -> bytes:
        """Return what stands for a name and a password beside the hash that they are of: a new hash is a new question."""
        return blake2b(kept + b"\0" + pair, key=self._secret, digest_size=16).digest()

    def knows(self, proof: bytes) -> bool:
        """Tell whether a pair was right before."""
        return proof in self._known

    def submit(
        self,
        kept: bytes,
        password: bytes,
        client: bytes,
        flow: Any,
        user: bytes,
        proof: bytes,
        decoys: Sequence[bytes] = (),
    ) -> Job | None:
        """Try a password; `flow.complete_auth` is called later. None: too many jobs wait, or no thread can try it.

        `kept` is the user's hash, b"" for a name that no user has. A wrong password is tried against all of `decoys`
        (htpasswd.find_decoys), with `kept` in the place of its cost: its time is the same for every user.
        """
        if self._waiting[client] >= SHARE or (self.count >= QUEUE and not self._make_room(client)):
            return None
        hashes = [kept if kept and work_of(one) == work_of(kept) else one for one in decoys]
        job = Job(kept, hashes or (kept,), password, client, flow, user, proof)
        native = self._is_native(job)
        lane = self._native if native else self._slow
        try:
            if native:
                self._start(native=True)
            if not native or len(job.hashes) > 1:
                self._start(native=False)
            lane.add(job.client, job)
            self._hand_out(native=native)
        except (OSError, RuntimeError) as problem:  # no thread, no memory
            lane.remove(job)
            self._notify(problem, native=native)
            return None
        self._told.discard(native)
        self.count += 1
        self._waiting[client] += 1
        return job

    def _is_native(self, job: Job) -> bool:
        return self._make_hasher is not None and is_apr1(job.hashes[job.at])

    def _make_room(self, client: bytes) -> bool:
        """Tell whether a job of the client with most jobs was just dropped for one of this client."""
        for other, most in self._waiting.most_common():
            if most <= self._waiting[client] + 1:
                return False
            last = self._slow.take_last(other) or self._native.take_last(other)
            if last is not None:
                self._refuse(last)
                return True
        return False

    def _refuse(self, job: Job) -> None:
        """Drop the job without verifying its password."""
        self._forget(job)
        flow, job.flow = job.flow, None
        if flow is not None:
            self._loop.call_soon(flow.refuse_auth, job)

    def _forget(self, job: Job) -> None:
        """The job has ended."""
        job.password = b""
        self.count -= 1
        self._waiting[job.client] -= 1
        if not self._waiting[job.client]:
            del self._waiting[job.client]

    def _start(self, *, native: bool) -> None:
        """Take the thread."""
        if native and self._hasher is None:
            assert self._make_hasher is not None
            hasher = self._make_hasher()
            self._loop.add_reader(hasher.fileno(), self._on_hashed)
            self._hasher = hasher
        elif not native and self._thread is None:
            thread = threading.Thread(target=self._run, name="passwords", daemon=True)
            thread.start()
            self._thread = thread

    def _hand_out(self, *, native: bool) -> None:
        """Give a thread its next job."""
        while not native and self._slow and self._begun < AHEAD:
            self._begun += 1
            self._jobs.append(self._slow.take())
            self._wake.release()
        while native and self._native and self._hasher and len(self._hashing) < AHEAD:
            job = self._native.take()
            try:
                self._hasher.submit(job.hashes[job.at], job.password)
            except (OSError, RuntimeError):
                self._native.add(job.client, job)
                raise
            if job.at + 1 == len(job.hashes):
                job.password = b""
            self._hashing.append(job)

    def _go_on(self) -> None:
        """The same when the native thread is free; a job that it cannot take is refused."""
        while True:
            try:
                return self._hand_out(native=True)
            except (OSError, RuntimeError) as problem:
                self._notify(problem, native=True)
                self._refuse(self._native.take())

    def _notify(self, problem: Exception, *, native: bool) -> None:
        """Once until passwords of that thread are tried again, however many come."""
        if native not in self._told:
            self._told.add(native)
            _log.error(
                "basic auth: passwords cannot be verified; requests with a password get 503: %s",
                problem,
            )

    def _on_hashed(self) -> None:
        if self._hasher is not None:
            for right in self._hasher.take():
                job = self._hashing.popleft()
                if self._note(job, right=right) and job.flow is not None:
                    self._slow.add(job.client, job)
                else:
                    self._loop.call_soon(self._land, job)
            self._hand_out(native=False)
            self._go_on()

    @staticmethod
    def _note(job: Job, *, right: bool) -> bool:
        """Take the result of one hash; returns whether more hashes follow. A decoy accepts no password."""
        job.right = right and bool(job.user) and job.hashes[job.at] is job.kept
        job.at += 1
        return not job.right and job.at < len(job.hashes)

    def forget(self, job: Job) -> None:
        """Its client has left: its place is free, if no thread has it, else when the thread has come to it."""
        job.flow = None
        if self._slow.remove(job) or self._native.remove(job):
            self._forget(job)

    def close(self) -> None:
        """Let the threads end; nobody waits any more."""
        self._closed = True
        if self._hasher is not None:
            self._loop.remove_reader(self._hasher.fileno())
            self._hasher = None
        self._wake.release()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while True:
            self._wake.acquire()
            if self._closed:
                return
            job = self._jobs.popleft()
            more = job.flow is not None
            while more:
                more = self._note(job, right=self._check(job.hashes[job.at], job.password))
            job.password = b""
            try:
                self._loop.call_soon_threadsafe(self._on_tried, job)
            except RuntimeError:  # the loop is closed
                return

    def _on_tried(self, job: Job) -> None:
        self._begun -= 1
        self._land(job)
        self._hand_out(native=False)

    def _land(self, job: Job) -> None:
        self._forget(job)
        if job.right:
            self._known[job.proof] = None
            if len(self._known) > KNOWN:
                del self._known[next(iter(self._known))]
        if job.flow is not None:
            job.flow.complete_auth(job, job.user if job.right else b"")
