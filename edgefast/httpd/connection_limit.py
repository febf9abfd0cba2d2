"""Connection limit of the small HTTP server: decides which connection is closed when no more are allowed.

In: connections that open, are active, are idle and close.
Out: the connection to close for a new one: the one that has been idle for the longest time. Clients
that hold idle connections therefore cannot block new clients. The limit follows from the descriptor
limit of the process; most descriptors are reserved for traffic.
Must never: select an active connection while an idle one exists.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["ConnectionLimit", "count_connections"]

T = TypeVar("T")

#: Connections of one server with enough descriptors: if all clients fit, none is closed and reconnects, and a single
#: request is not queued behind the others. An idle connection costs some hundred bytes (connections.py).
_MOST = 2560
#: Part of the process's descriptors that one server may use: there are three.
_PART = 8
#: A new request must be read while others are active.
_LEAST = 4


def count_connections(at_work: int) -> int:
    """Return how many connections a server may have, of which `at_work` may be at work."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    plenty = limit == resource.RLIM_INFINITY or limit // _PART >= _MOST
    return max(_MOST if plenty else limit // _PART, at_work + _LEAST)


class ConnectionLimit(Generic[T]):
    """Bounds the connections of a small HTTP server and evicts the one that is idle longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: OrderedDict[T, None] = OrderedDict()  # the longest first
        self._at_work: set[T] = set()

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._waiting) + len(self._at_work)

    @property
    def most(self) -> int:
        """The maximum number of connections."""
        return self._most

    def enter(self, one: T) -> T | None:
        """Add a connection; returns the idle one to close for it, already removed, or None."""
        self._waiting[one] = None
        return self.give_up() if len(self) > self._most else None

    def give_up(self) -> T | None:
        """Remove and return the connection that was idle for the longest time; None when none is idle."""
        return self._waiting.popitem(last=False)[0] if self._waiting else None

    def work(self, one: T) -> None:
        """It is being answered."""
        if one in self._waiting:
            del self._waiting[one]
            self._at_work.add(one)

    def wait(self, one: T) -> None:
        """It waits for its client from now on."""
        if one in self._at_work or one in self._waiting:
            self._at_work.discard(one)
            self._waiting[one] = None
            self._waiting.move_to_end(one)

    def leave(self, one: T) -> None:
        """Remove a closed connection; it may have been removed before."""
        self._waiting.pop(one, None)
        self._at_work.discard(one)
