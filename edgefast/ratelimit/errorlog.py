"""Errors of the store: counts for `dump`, and log lines that do not repeat themselves.

In: every refusal and every recovery, with the place it concerns. Out: errors by kind, the last reason, and one line when a
place stops serving, one when it serves again, and one a minute at most for each kind of refusal that goes on meanwhile.
Must never: log per request, nor log a key, a header value or a secret.
"""

from __future__ import annotations

import logging
from collections import Counter

from edgefast.ratelimit.refusal import Refusal

__all__ = ["ErrorLog"]

_log = logging.getLogger("edgefast.ratelimit")


class ErrorLog:
    """The errors of one store."""

    INTERVAL = 60.0  # seconds between two lines about one place and kind

    def __init__(self, policy: str) -> None:
        """`policy`: what becomes of requests meanwhile, in words."""
        self._policy = policy
        self.down: dict[str, str] = {}  # places that do not serve, and why
        self._logged: dict[tuple[str, str], float] = {}  # (place, kind) -> when
        self.errors: Counter[str] = Counter()  # by kind
        self.last = ""  # the last reason

    def on_refusal(self, place: str, refusal: Refusal, is_open: bool, now: float) -> None:
        """Count it; `is_open`: nobody asks the place any more."""
        self.errors[refusal.kind] += 1
        self.last = f"{place}: {refusal.reason}"
        key = (place, refusal.kind)
        stopped = is_open and place not in self.down
        if stopped:
            self.down[place] = refusal.reason
            _log.warning(
                "rate limits: %s does not serve: %s; %s", place, refusal.reason, self._policy
            )
        elif now - self._logged.get(key, -self.INTERVAL) >= self.INTERVAL:
            _log.info("rate limits: %s: %s", place, refusal.reason)
        else:
            return
        self._logged[key] = now

    def on_success(self, place: str) -> None:
        """It serves."""
        if self.down.pop(place, None) is not None:
            _log.warning("rate limits: %s serves again", place)

    def forget(self, place: str) -> None:
        """It is not used any more; where its counters are now is said by nobody but this."""
        if self.down.pop(place, None) is not None:
            _log.warning("rate limits: %s holds no counters any more; others serve them", place)
        self._logged = {key: when for key, when in self._logged.items() if key[0] != place}
