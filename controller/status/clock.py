"""SystemClock: the time, as the status writer wants it. Must never: be used by anything that is to be pure."""

from __future__ import annotations

import datetime
import time

__all__ = ["SystemClock"]


class SystemClock:
    """See `controller.status.writer.Clock`."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return time.monotonic()

    def stamp(self) -> str:
        """Return the time as RFC 3339 text with seconds."""
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
