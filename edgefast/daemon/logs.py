"""Process log: one plain line per event on standard error.

In: standard `logging` records.
Out: `2026-01-31T12:00:00.123Z warning agent worker 1 died ...`. The access log is separate
(proxy/access_log).
Must never: log key material, a header value or the bytes of a resource; callers log names, counts
and errors only.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

__all__ = ["LEVELS", "LogThrottle", "set_level", "start_logging", "write_line"]

LEVELS = ("debug", "info", "warning", "error")
#: Loggers of our own packages; a process has the records of those that it runs.
_OURS = ("edgefast", "controller")
#: What Python has other words for.
_NAMES = {logging.CRITICAL: "error", logging.NOTSET: "info"}
#: Seconds between two lines about a trouble that others can make as often as they like.
_SELDOM = 10.0


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Write one record; line breaks in a message are escaped, each line of a traceback has the same head."""
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        where = record.name.rpartition(".")[2]
        level = _NAMES.get(record.levelno, record.levelname.lower())
        head = f"{clock}.{int(record.msecs):03}Z {level} {where}[{record.process}] "
        lines = [record.getMessage().replace("\r", "\\r").replace("\n", "\\n")]
        if record.exc_info:
            lines += self.formatException(record.exc_info).splitlines()
        return "\n".join(head + line for line in lines)


def start_logging(level: str) -> None:
    """Send our loggers to standard error from `level` on, and everybody else's warnings, so that every line has a head."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line())
    for name in (*_OURS, "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
    set_level(level)
    root = logging.getLogger()
    strangers = [one for one in root.handlers if not isinstance(one.formatter, _Line)]
    root.handlers[:] = [*strangers, handler]
    logging.captureWarnings(True)
    sys.excepthook = _on_uncaught
    threading.excepthook = lambda one: _on_uncaught(one.exc_type, one.exc_value, one.exc_traceback)
    sys.unraisablehook = lambda one: _on_uncaught(one.exc_type, one.exc_value, one.exc_traceback)


def _on_uncaught(
    type_: type[BaseException], error: BaseException | None, traceback: TracebackType | None
) -> None:
    """Log what nobody caught: a mistake of ours."""
    if issubclass(type_, KeyboardInterrupt | SystemExit):
        return
    known = (type_, error, traceback) if error is not None else None
    logging.getLogger("edgefast").error("uncaught %s", type_.__name__, exc_info=known)


def write_line(level: str, where: str, text: str) -> None:
    """Write a line to standard error whatever the log's level is: what a command has to say.

    A disk that is full or a reader that is gone must not end the service.
    """
    record = logging.LogRecord(where, logging.getLevelName(level.upper()), "", 0, text, None, None)
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{_Line().format(record)}\n")
        sys.stderr.flush()


def set_level(level: str) -> None:
    """Change the level at run time; ValueError names the allowed ones."""
    if level not in LEVELS:
        raise ValueError(f'"{level}" is not a log level (supported: {", ".join(LEVELS)})')
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())


class LogThrottle:
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
