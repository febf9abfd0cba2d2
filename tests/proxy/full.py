"""A process without a free descriptor, for as long as a block lasts.

In: nothing. Out: the descriptors that fill this process; the block may close some of them, to have
as many again.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exhausted() -> Iterator[list[int]]:
    """No descriptor is left in this process; the block may close some of those that fill it."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 50, limits[1]))
    taken: list[int] = []
    try:
        while True:
            try:
                taken.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        yield taken
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
