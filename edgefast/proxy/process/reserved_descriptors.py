"""ReservedDescriptors: descriptors kept free for control work, so that a process at its limit can still be controlled.

In: the number of descriptors.
Out: free descriptors while `spare` repeats its work, or inside `lent`. Connections use the
descriptors of a process up to its limit (setrlimit(2), RLIMIT_NOFILE). A new certificate, listener
or worker must not fail for that reason. One reserve per process, because the limit is per process.
Must never: be lent for a connection, or across an await during which connections could use the lent
descriptors.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["RESERVE", "ReservedDescriptors", "is_shortage"]

T = TypeVar("T")

#: ENOSPC: epoll_ctl(2), when a user's watches are used up.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC})


def is_shortage(error: BaseException) -> bool:
    """Tell whether something failed for want of descriptors or memory: later it may succeed."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_shortage(one) for one in error.exceptions)
    if isinstance(error, MemoryError):
        return True
    # An ssl.SSLError is an OSError whose errno is a number of OpenSSL's.
    return (
        isinstance(error, OSError) and not hasattr(error, "library") and error.errno in _SHORTAGES
    )


class ReservedDescriptors:
    """File descriptors that are kept free for control work; empty until `hold`."""

    def __init__(self) -> None:
        self._size = 0
        self._held: list[int] = []
        self._lent = 0

    @property
    def held(self) -> int:
        """Descriptors kept back now."""
        return len(self._held)

    def hold(self, size: int) -> None:
        """Keep `size` descriptors back from now on; 0 gives all up."""
        self._size = size
        while len(self._held) > size:
            os.close(self._held.pop())
        self.fill()

    def fill(self) -> None:
        """Take back what is missing, as far as there are descriptors."""
        while not self._lent and len(self._held) < self._size:
            try:
                self._held.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Free the reserve for the block."""
        self._lent += 1
        while self._held:
            os.close(self._held.pop())
        try:
            yield
        finally:
            self._lent -= 1
            self.fill()

    def spare(self, work: Callable[[], T]) -> T:
        """Return what `work` returns; when it lacks descriptors, try again with the reserve."""
        try:
            return work()
        except OSError as error:
            if not is_shortage(error) or not self._held:
                raise
        with self.lent():
            return work()


#: The process's.
RESERVE = ReservedDescriptors()
