"""The interpreter is one for all threads of a process: how long the event loop waits until a thread that computes lets go of it.

In: nothing. Out: a shorter interval than Python's (5 ms): each system call of the loop lets go of the interpreter, and a probe's
answer is some ten of them. Must never: be set by a process without a loop that others wait for.
"""

from __future__ import annotations

import sys

__all__ = ["share_interpreter"]

#: Seconds that a thread computes before it lets go, once another one waits. A change of threads costs some ten microseconds.
_INTERVAL = 0.0005


def share_interpreter() -> None:
    """Have threads that compute let the loop go on soon."""
    sys.setswitchinterval(_INTERVAL)
