"""The interpreter is one for all threads of a process: how long the event loop waits until a thread that computes lets go of it.

In: nothing. Out: a shorter interval than Python's (5 ms): each wait of the loop lets go of the interpreter, and a probe's
answer is some ten of them. Must never: be set by a process without a loop that others wait for.
"""

from __future__ import annotations

import sys

__all__ = ["WORKER_INTERVAL", "share_interpreter"]

#: Seconds that a thread computes before it lets go, once another one waits. A change of threads costs some ten microseconds.
_INTERVAL = 0.0005
#: The same in a worker, whose loop lets go in each turn: clients wait for it while somebody's passwords are tried ($apr1$ is 0.4 ms of Python).
WORKER_INTERVAL = 0.00005


def share_interpreter(interval: float = _INTERVAL) -> None:
    """Have threads that compute let the loop go on soon."""
    sys.setswitchinterval(interval)
