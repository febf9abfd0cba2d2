"""Waiting for something on this machine, with a deadline and without a fixed sleep.

In: a condition. Out: when it holds, or TimeoutError. Deadlines here and in the other waits of a world are against hangs: a slow
machine does not meet them.
Must never: be used where the API server can be asked: `Api.wait` says what it saw.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(true: Callable[[], object], seconds: float = 60.0, *, every: float = 0.05) -> None:
    """Poll a condition until it holds."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so after {seconds} s")
        time.sleep(every)
