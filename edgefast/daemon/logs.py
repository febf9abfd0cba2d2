"""Logging of the processes themselves: one plain line per event on standard error.

In: standard `logging` records. Out: `2026-01-31T12:00:00.123Z warning agent worker 1 died ...`.
The access log is another thing (accesslog.py). Must never log key material, a header value or a
resource's bytes; callers log names, counts and errors only.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

__all__ = ["LEVELS", "Seldom", "set_level", "start_logging"]

LEVELS = ("debug", "info", "warning", "error")
#: Loggers of our own packages; a process has the records of those that it runs.
_OURS = ("edgefast", "controller")
#: Seconds between two lines about a trouble that others can make as often as they like.
_SELDOM = 10.0


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Write one record; line breaks in a message are escaped, a traceback keeps its lines."""
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        where = record.name.rpartition(".")[2]
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        level = record.levelname.lower()
        line = f"{clock}.{int(record.msecs):03}Z {level} {where}[{record.process}] {message}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def start_logging(level: str) -> None:
    """Send our loggers and asyncio's to standard error from `level` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line())
    for name in (*_OURS, "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
    set_level(level)


def set_level(level: str) -> None:
    """Change the level at run time; ValueError names the allowed ones."""
    if level not in LEVELS:
        raise ValueError(f'"{level}" is not a log level (supported: {", ".join(LEVELS)})')
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())


class Seldom:
    """Warnings about one trouble that others can make: the first at once, then one for all of a while."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._next = 0.0
        self._unsaid = 0

    def warn(self, message: str, *values: object) -> None:
        """Say it, or count it until the next time."""
        if (now := self._clock()) < self._next:
            self._unsaid += 1
            return
        more = f" ({self._unsaid} more of this since the last line)" if self._unsaid else ""
        self._next, self._unsaid = now + _SELDOM, 0
        self._logger.warning(message + more, *values)
