"""Primary: one server with counters: its connection, the calls in progress, and the calls that wait for a connection.

In: calls.
Out: to the callbacks, for each call exactly one of settled and refused, or moved to another server.
A call waits only while a connection attempt is in progress; no other queue exists. A call is sent
again only when no part of it can have been counted. A late answer fails the calls that it delays;
the connection and its calls in progress stay. When the breaker opens, by late answers or refusals
of any kind, the connection is closed. Attempts to count on a new one decide when calls are sent
again. The old connection is closed before a new one is made.
Must never: call back from inside `submit`, `expire` or `close`, except for refusals, which the
store defers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Set
from typing import Any, Protocol

from edgefast.rate_limit.call import Call, cut_calls
from edgefast.rate_limit.error_reply import Refusal, Refused, read_refusal
from edgefast.rate_limit.link import Link
from edgefast.rate_limit.retry import RetryLoop
from edgefast.rate_limit.script import ANSWER_SIZE, LOAD, Check

__all__ = ["CLOSED", "Callbacks", "Primary"]

_LOST = Refusal("lost", "the connection was lost")
_TIMEOUT = Refusal("timeout", "it does not answer in time")
CLOSED = Refusal("closed", "the store is no longer used")
_NONSENSE = Refusal("error", "the answer of the store is not an answer of the script")

_ASKING = b"*1\r\n$6\r\nASKING\r\n"


class Callbacks(Protocol):
    """What the store that submitted the calls is told."""

    @property
    def settle(self) -> Callable[[list[Check], bytes], object]:
        """Takes the answers to all of these checks (script.py); may submit."""

    def refuse(self, checks: list[Check], refusal: Refusal) -> None:
        """Nothing came of them."""

    def redirect(self, call: Call, refusal: Refusal, primary: Primary) -> None:
        """`primary` has not counted it: the slot is somewhere else (refusal.then is "moved" or "ask")."""

    def note(self, primary: Primary | None, refusal: Refusal | None) -> None:
        """It serves (None), or something failed; `primary` None: finding one did."""

    def forget(self, primary: Primary) -> None:
        """It is not used any more."""


class Primary:
    """One server, wherever it is found."""

    def __init__(
        self,
        name: str,
        open_link: Callable[[], Awaitable[Link]],
        callbacks: Callbacks,
        deadline: float,
        timeout: float,
    ) -> None:
        """`name` is for people; `open_link` finds and connects it, within `deadline` seconds; an answer has `timeout`."""
        self.name = name
        self._timeout = timeout
        self.retry = RetryLoop(self._connect, self._on_held, self._on_failed, deadline)
        self._open_link = open_link
        self._callbacks = callbacks
        self._link: Link | None = None
        self._leaving = False  # the link is given up as soon as the replies under way are here
        self._waiting: list[Call] = []

    @property
    def connected(self) -> bool:
        """It has counted on the present connection."""
        return self._link is not None

    @property
    def idle(self) -> bool:
        """No call is under way or waits."""
        return not self._waiting and (self._link is None or not self._link.pending)

    def start(self) -> None:
        """Begin to connect."""
        self.retry.start()

    def submit(self, calls: list[Call]) -> None:
        """Send calls in one write, or let them wait for the connection, or refuse them."""
        link = self._link
        if link is not None and not self._leaving:
            if len(calls) == 1 and not calls[0].asking:
                link.send(calls[0].packet, calls)
            else:
                _send(link, calls)
        elif self._leaving or (self.retry.trying and not self.retry.breaker.open):
            self._waiting += calls
        else:
            for call in calls:
                self._callbacks.refuse(call.checks, self.retry.refusal)

    def expire(self, late: Set[int], now: float) -> None:
        """Some checks, by their ids, have waited long enough: those of them that are here are a failure."""
        waiting = [call for call in self._waiting if call.expire(late)]
        sent = [call for call in self._take_pending() if call.expire(late)]
        if not waiting and not sent:
            return
        for call in waiting:
            self._waiting.remove(call)
            self._callbacks.refuse(call.checks, _TIMEOUT)
        if self.retry.breaker.on_late(now, self._timeout):
            self.retry.refusal = _TIMEOUT
            self._callbacks.note(self, _TIMEOUT)
            self._leave_if_open()

    def close(self) -> None:
        """End."""
        self.retry.close()
        calls, self._waiting = self._waiting, []
        calls = calls + self._take_pending()
        if self._link is not None:
            self._link.close()
            self._link = None
        for call in calls:
            self._callbacks.refuse(call.checks, CLOSED)

    # --- the connection ---------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        link = await self._open_link()
        if not link.alive:  # it ended when nobody was told yet
            raise Refused(_LOST)
        link.receive = self._on_reply
        link.lost = self._on_lost
        self._link = link

    def _on_held(self) -> None:
        self.retry.breaker.on_success()
        self._callbacks.note(self, None)
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.submit(waiting)

    def _on_failed(self, refusal: Refusal) -> None:
        self._count_failure(refusal)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._callbacks.refuse(call.checks, refusal)

    def _on_lost(self) -> None:
        calls = self._take_pending()
        self._drop()
        self._callbacks.note(self, _LOST)
        for call in calls:
            self._callbacks.refuse(call.checks, _LOST)

    def _drop(self) -> None:
        assert self._link is not None
        self._link.close()
        self._link = None
        self._leaving = False
        self.retry.need()

    def _count_failure(self, refusal: Refusal) -> None:
        self.retry.refusal = refusal
        self.retry.breaker.on_failure()
        self._callbacks.note(self, refusal)

    def _leave_if_open(self) -> None:
        """Give the connection up, and what is under way on it: who is asked again has counted on a new one."""
        if not self.retry.breaker.open or self._link is None:
            return
        calls = self._take_pending() + self._waiting
        self._waiting = []
        self._drop()
        for call in calls:
            self._callbacks.refuse(call.checks, self.retry.refusal)

    def _take_pending(self) -> list[Call]:
        pending = self._link.pending if self._link is not None else ()
        return [entry for entry in pending if isinstance(entry, Call)]

    # --- replies ----------------------------------------------------------------------------------------------------

    def _on_reply(self, call: Call, reply: Any) -> None:
        if type(reply) is bytes and len(reply) == ANSWER_SIZE * len(call.checks):
            if self.retry.breaker.failures and not call.late:
                self.retry.breaker.on_success()
                self._callbacks.note(self, None)
            self._callbacks.settle(call.checks, reply)
        else:
            self._on_refusal(
                call, read_refusal(str(reply)) if isinstance(reply, Exception) else _NONSENSE
            )
        if self._leaving and self._link is not None and not self._link.pending:
            self._drop()

    def _on_refusal(self, call: Call, refusal: Refusal) -> None:
        link = self._link
        assert link is not None
        if refusal.then == "fail" or not call.may_repeat():
            self._give_up(call, refusal)
        elif refusal.then == "load":
            link.send(LOAD, (None,))
            _send(link, [call])
        elif refusal.then == "split":
            if len(call.checks) > 1:
                _send(link, cut_calls(call.checks, 1))
            else:
                self._callbacks.note(self, refusal)
                self._callbacks.refuse(call.checks, refusal)
        elif refusal.then == "reconnect":
            self._callbacks.note(self, refusal)
            self._leaving = True
            self._waiting.append(call)
        elif refusal.then == "ask" and len(call.checks) > 1:
            _send(link, cut_calls(call.checks, 1))  # some may still be here
        else:
            self._callbacks.redirect(call, refusal, self)

    def _give_up(self, call: Call, refusal: Refusal) -> None:
        """It answers, and does not count: whatever the reason is, that is a failure."""
        self._callbacks.refuse(call.checks, refusal)
        self._count_failure(refusal)
        self._leave_if_open()


def _send(link: Link, calls: list[Call]) -> None:
    packets: list[bytes] = []
    entries: list[Call | None] = []
    for call in calls:
        if call.asking:
            packets.append(_ASKING)
            entries.append(None)
        packets.append(call.packet)
        entries.append(call)
    link.send(b"".join(packets), entries)
