"""Error log of one worker's store: counts for `dump`, failed servers, and log lines without repetition.

In: every refusal and every recovery, with its server.
Out: errors by kind, the last reason, the failed servers; log lines for developers, at most one a
minute for each kind of continuing refusal. All workers see the same errors, so the agent reports
them once to operators (edgefast/proxy/agent/limit_warnings.py).
Must never: log per request, or log a key, a header value or a secret.
"""

from __future__ import annotations

import logging
from collections import Counter

from edgefast.rate_limit.error_reply import Refusal
from edgefast.rate_limit.store_status import FORGOTTEN, SERVES

__all__ = ["ErrorLog"]

_log = logging.getLogger("edgefast.rate_limit")


class ErrorLog:
    """The errors of one store."""

    INTERVAL = 60.0  # seconds between two lines about one place and kind

    def __init__(self) -> None:
        self.down: dict[str, str] = {}  # places that do not serve, and why
        self.over: dict[
            str, str
        ] = {}  # what became of those that were; whoever tells it empties it
        self._logged: dict[tuple[str, str], float] = {}  # (place, kind) -> when
        self.errors: Counter[str] = Counter()  # by kind
        self.last = ""  # the last reason

    def on_refusal(self, place: str, refusal: Refusal, is_open: bool, now: float) -> None:
        """Count it; `is_open`: nobody asks the place any more."""
        self.errors[refusal.kind] += 1
        self.last = f"{place}: {refusal.reason}"
        key = (place, refusal.kind)
        if is_open and place not in self.down:
            self.down[place] = refusal.reason
            self.over.pop(place, None)
            _log.debug("rate limits: %s does not serve: %s", place, refusal.reason)
        elif now - self._logged.get(key, -self.INTERVAL) >= self.INTERVAL:
            _log.debug("rate limits: %s: %s", place, refusal.reason)
        else:
            return
        self._logged[key] = now

    def on_success(self, place: str) -> None:
        """It serves."""
        self._end(place, SERVES)

    def forget(self, place: str) -> None:
        """It is not used any more; where its counters are now is said by nobody but this."""
        self._end(place, FORGOTTEN)
        self._logged = {key: when for key, when in self._logged.items() if key[0] != place}

    def _end(self, place: str, how: str) -> None:
        if self.down.pop(place, None) is not None:
            self.over[place] = how
            _log.debug("rate limits: %s %s", place, how)
