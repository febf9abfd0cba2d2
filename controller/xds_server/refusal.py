"""Refusals: refused or ended calls and streams, counted and logged by cause in one module.

In: `Refused`, raised by any module of this package.
Out: a status for the peer, a counter by cause, a log line. Status names are gRPC's.
Must never: contain a token, a key, or text from the peer: causes and messages are constants or
validated names.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Literal, get_args

from controller.xds_server.limits import (
    REFUSAL_AGAIN,
    REFUSAL_LINES,
    REFUSAL_SUMS,
    REFUSALS_KEPT,
)

__all__ = ["CAUSES", "Cause", "Refusals", "Refused", "Status"]

log = logging.getLogger("edgefast.controller.push")

Status = Literal[
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "UNIMPLEMENTED",
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "DEADLINE_EXCEEDED",
    "ABORTED",
    "UNAVAILABLE",
    "INTERNAL",
]

#: Why somebody was turned away; a label of a metric, so the list is closed.
Cause = Literal[
    "no_credential",
    "certificate",
    "revoked",
    "identity",
    "token",
    "audience",
    "service_account",
    "review_failed",
    "expired",
    "unknown_fleet",
    "node",
    "method",
    "message",
    "protocol",
    "format",
    "replayed",
    "closed",
    "crowded",
    "replaced",
    "removed",
    "behind",
    "slow",
    "bug",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)


class Refused(Exception):
    """Ends a call. `message` goes to the peer and into the log."""

    def __init__(self, cause: Cause, status: Status, message: str) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        self.status: Status = status
        self.message = message


class Refusals:
    """Counts by cause. The same refusal of one caller is told once an hour, and none more than REFUSAL_LINES a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self.counts: Counter[Cause] = Counter(dict.fromkeys(CAUSES, 0))
        self._clock = clock
        self._second = 0
        self._lines = 0
        self._unsaid = 0
        self._summed = clock()  # when the others were last counted aloud
        self._reported: OrderedDict[tuple[Cause, str, str], float] = OrderedDict()

    def note(self, refused: Refused, *, peer: str, method: str, fleet: str = "") -> None:
        """Count a refusal and log it; `fleet` is what the credential names, if it names one."""
        self.counts[refused.cause] += 1
        now = self._clock()
        if int(now) != self._second:
            self._second, self._lines = int(now), 0
        # A caller has a new port for each call.
        key = (refused.cause, peer.rpartition(":")[0] or peer, fleet)
        if (
            now - self._reported.get(key, -REFUSAL_AGAIN) < REFUSAL_AGAIN
            or self._lines >= REFUSAL_LINES
        ):
            self._unsaid += 1
        else:
            self._lines += 1
            self._reported[key] = now
            self._reported.move_to_end(key)
            while len(self._reported) > REFUSALS_KEPT:
                self._reported.popitem(last=False)
            who = f"{peer} (fleet {fleet})" if fleet else peer
            say = log.info if refused.cause in ("replaced", "removed") else log.warning
            say("refused %s from %s: %s (%s)", _known(method), who, refused.message, refused.cause)
        if self._unsaid and now - self._summed >= REFUSAL_SUMS:
            log.warning("%d more calls were refused", self._unsaid)
            self._unsaid, self._summed = 0, now


def _known(method: str) -> str:
    """Return the last part of a method if it is an identifier; a method is text of the peer."""
    word = method.rpartition("/")[2]
    return word if word.isascii() and word.isidentifier() and len(word) <= 64 else "a call"
