"""Throttle: all wait times and request limits of the API access.

In: nothing.
Out: one frozen Struct with every such number, a jittered `Backoff`, and `Bucket`, which limits
calls per second.
Must never: wait without jitter where many replicas would wait for the same event.
"""

from __future__ import annotations

import asyncio
import random
import time

import msgspec

#: Tries in vain after which a fault of the server counts as an answer: some 10 s of them, which is longer than an election or a
#: restart of a server takes; what lasts longer may be that object's, or that namespace's, alone.
TRIES = 8


class RequestRate(msgspec.Struct, frozen=True, kw_only=True):
    """Times are seconds."""

    page: int = 500  # objects per page of a list
    page_deadline: float = 60.0  # for one page
    # A watch is ended by the server after a random time between these, so that replicas of the API server share load.
    watch_least: float = 240.0
    watch_most: float = 360.0
    # API servers send a bookmark about every 60 s; a watch silent for longer than this is taken for dead (half-open).
    silence: float = 100.0
    backoff_first: float = 0.1
    backoff_most: float = 15.0
    # A watch that lives this long was a good one: what went wrong before it is forgotten.
    healthy_after: float = 10.0
    failures: int = 5  # watches in a row without one event, after which the list is read anew
    discover_missing: float = 5.0  # between looks for kinds that are not served
    discover: float = 60.0  # between looks when all are
    # Between looks at the release of the CRDs, one annotation of one object: it is all of a CRD that may be read, and that
    # they are of another release is told in a status, within seconds.
    discover_version: float = 4.0
    absent_after: float = 0.5  # a kind never seen counts as missing after this
    gone_after: float = 10.0  # a kind seen before counts as gone after this
    fetches: int = 8  # referenced objects read at once
    fetch_deadline: float = 10.0
    fetch_most: float = 30.0  # between tries of one referenced object
    patience: float = 2.0  # a changed snapshot waits this long for objects that it refers to


class Backoff:
    """Waiting times with full jitter, doubling from `first` to `most` seconds."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self._ceiling = first

    def next(self) -> float:
        """Return how long to wait now: a random time under a ceiling that doubles with each call."""
        wait = random.uniform(self._ceiling / 2, self._ceiling)
        self._ceiling = min(self._ceiling * 2, self._most)
        return wait

    def reset(self) -> None:
        """Begin anew: something succeeded."""
        self._ceiling = self._first


class Bucket:
    """A token bucket: `rate` calls per second, `burst` of them at once after a pause."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        # The moment at which the bucket is full; every call moves it on by its share of time.
        self._full_at = 0.0

    def reserve(self) -> float:
        """Take a call and return how many seconds it has to wait; callers go in order of their coming."""
        now = time.monotonic()
        self._full_at = max(self._full_at, now) + 1.0 / self._rate
        return max(0.0, self._full_at - now - self._burst / self._rate)

    async def take(self) -> None:
        """Wait for one's turn; the caller's deadline bounds it."""
        wait = self.reserve()
        if wait > 0:
            await asyncio.sleep(wait)
