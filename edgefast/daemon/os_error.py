"""System errors: one line of text for an error of the operating system that ended a process.

In: the exception that ended a process.
Out: a line with the missing resource and the fix, or "" for an error of the program, which keeps
its traceback.
Must never: describe a user's mistake; those are Problems.
"""

from __future__ import annotations

import errno
import resource

__all__ = ["explain_failure", "is_refusal"]

#: What the system says to a program that is wrong: no administrator can mend that, and its place has to be seen.
_MISTAKES = frozenset({errno.EBADF, errno.EFAULT, errno.EINVAL, errno.ENOTSOCK})


def is_refusal(error: BaseException) -> bool:
    """Tell whether all of it is the system's refusal of something, and none of it a mistake of the program."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_refusal, error.exceptions))
    return bool(explain_failure(error))


def explain_failure(error: BaseException) -> str:
    """Say what the system refused, "" when it is no word of the system's."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(filter(None, dict.fromkeys(map(explain_failure, error.exceptions))))
    if isinstance(error, MemoryError):
        return "out of memory"
    if not isinstance(error, OSError) or error.errno in _MISTAKES:
        return ""
    why = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        why += f"; the limit is {limit}: raise ulimit -Hn or LimitNOFILE= in the unit"
    return why
