"""Failure: what the system refused, in words.

In: what ended a process. Out: a line with what cannot be had and what to do, or "" for what is no word of the system's but a
mistake of the program, which keeps its traceback. Must never: be asked about a user's mistake; those are Problems.
"""

from __future__ import annotations

import errno
import resource

__all__ = ["explain_failure"]


def explain_failure(error: BaseException) -> str:
    """Say what the system refused, "" when it is no word of the system's."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(filter(None, dict.fromkeys(map(explain_failure, error.exceptions))))
    if isinstance(error, MemoryError):
        return "out of memory"
    if not isinstance(error, OSError):
        return ""
    why = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        why += f"; the limit is {limit}: raise ulimit -Hn or LimitNOFILE= in the unit"
    return why
