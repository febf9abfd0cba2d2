"""Token queue: tokens that wait for verification: each client's in order, all clients in turn.

In: jobs, each of a client and with a token. Out: the next one, of the client that has waited
longest. Waiting jobs are bounded in number and bytes. At the bound, the client with most loses jobs
to clients with fewer (share/client_share.pyx). One client's flood therefore never blocks the tokens
of others.
Must never: hold more than its bounds, or let one client's tokens come before all of another's.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from edgefast.core.fastpath import ClientShare

__all__ = ["QUEUE", "QUEUE_BYTES", "TokenQueue"]

#: Tokens that wait for a turn or for the thread, and their bytes.
QUEUE = 1024
QUEUE_BYTES = 8 * 1024 * 1024
#: Bytes of a unit of the share, and units of a job beside its token: an equal part of the bytes.
_UNIT = 1024
_EACH = QUEUE_BYTES // QUEUE // _UNIT


class _Waits(Protocol):
    @property
    def client(self) -> bytes: ...
    @property
    def token(self) -> bytes: ...


Job = TypeVar("Job", bound=_Waits)


class TokenQueue(Generic[Job]):
    """All of a worker's: `ready` wait for the loop, `slow` for the thread."""

    def __init__(self) -> None:
        self.ready: ClientShare[Job] = ClientShare()
        self.slow: ClientShare[Job] = ClientShare()
        self._jobs: ClientShare[Job] = ClientShare()  # of both
        self._bytes = 0

    @property
    def count(self) -> int:
        """Jobs that wait."""
        return len(self._jobs)

    def enter(self, job: Job, lane: ClientShare[Job]) -> tuple[bool, list[Job]]:
        """Whether there is room for it, and those who gave way."""
        gone: list[Job] = []
        units = _EACH + -(-len(job.token) // _UNIT)
        while self.count >= QUEUE or self._bytes + len(job.token) > QUEUE_BYTES:
            last = self._jobs.evict(job.client, units)
            if last is None:
                return False, gone
            self.ready.remove(last)
            self.slow.remove(last)
            self._bytes -= len(last.token)
            gone.append(last)
        self._jobs.add(job.client, job, units)
        self._bytes += len(job.token)
        lane.add(job.client, job)
        return True, gone

    def take(self, lane: ClientShare[Job]) -> Job:
        """The next one of a lane that has some."""
        job = lane.take()
        self._jobs.remove(job)
        self._bytes -= len(job.token)
        return job
