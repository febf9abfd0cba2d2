"""Token queue: tokens that wait for verification: each client's in order, all clients in turn.

In: jobs, each of a client and with a token. Out: the next one, of the client that has waited
longest. Waiting jobs are bounded in number and bytes. At the bound, the client with most loses jobs
to clients with fewer. One client's flood therefore never blocks the tokens of others.
Must never: hold more than its bounds, or let one client's tokens come before all of another's.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from operator import itemgetter
from typing import Generic, Protocol, TypeVar

__all__ = ["QUEUE", "QUEUE_BYTES", "Lane", "TokenQueue"]

#: Tokens that wait for a turn or for the thread, and their bytes.
QUEUE = 1024
QUEUE_BYTES = 8 * 1024 * 1024
_EACH = (
    QUEUE_BYTES // QUEUE
)  # what a token weighs beside its bytes, when it is asked who holds most


class _OfClient(Protocol):
    @property
    def client(self) -> bytes: ...


class _Waits(_OfClient, Protocol):
    @property
    def token(self) -> bytes: ...


Job = TypeVar("Job", bound=_Waits)
_Any = TypeVar("_Any", bound=_OfClient)


class Lane(Generic[_Any]):
    """Those who wait for one thing."""

    def __init__(self) -> None:
        self._clients: OrderedDict[bytes, deque[_Any]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._clients)

    def add(self, job: _Any) -> None:
        """Behind those of its client."""
        self._clients.setdefault(job.client, deque()).append(job)

    def next(self) -> _Any:
        """Take the first of the client whose turn it is."""
        client, jobs = next(iter(self._clients.items()))
        job = jobs.popleft()
        if jobs:
            self._clients.move_to_end(client)
        else:
            del self._clients[client]
        return job

    def remove(self, job: _Any) -> bool:
        """Remove this job; False: it does not wait here."""
        jobs = self._clients.get(job.client)
        if jobs is None or job not in jobs:
            return False
        jobs.remove(job)
        if not jobs:
            del self._clients[job.client]
        return True

    def last_of(self, client: bytes) -> _Any | None:
        """Take the last of a client."""
        jobs = self._clients.get(client)
        if jobs is None:
            return None
        job = jobs.pop()
        if not jobs:
            del self._clients[client]
        return job


class TokenQueue(Generic[Job]):
    """All of a worker's: `ready` wait for the loop, `slow` for the thread."""

    def __init__(self) -> None:
        self.ready: Lane[Job] = Lane()
        self.slow: Lane[Job] = Lane()
        self.count = 0
        self._bytes = 0
        self._held: Counter[bytes] = Counter()  # weight by client

    def enter(self, job: Job, lane: Lane[Job]) -> tuple[bool, list[Job]]:
        """Whether there is room for it, and those who gave way."""
        gone: list[Job] = []
        weight = _EACH + len(job.token)
        while self.count >= QUEUE or self._bytes + len(job.token) > QUEUE_BYTES:
            joined_share, most = max(self._held.items(), key=itemgetter(1))
            if most <= self._held[job.client] + weight:
                return False, gone
            last = self.ready.last_of(joined_share) or self.slow.last_of(joined_share)
            assert last is not None
            self._forget(last)
            gone.append(last)
        self.count += 1
        self._bytes += len(job.token)
        self._held[job.client] += weight
        lane.add(job)
        return True, gone

    def take(self, lane: Lane[Job]) -> Job:
        """The next one of a lane that has some."""
        job = lane.next()
        self._forget(job)
        return job

    def _forget(self, job: Job) -> None:
        self.count -= 1
        self._bytes -= len(job.token)
        left = self._held[job.client] - _EACH - len(job.token)
        if left:
            self._held[job.client] = left
        else:
            del self._held[job.client]
