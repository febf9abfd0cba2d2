"""CookieRing: the ticket secrets of a worker, as a source of keys for cookies (auth/oidc/cookie_cipher.py).

In: the mapped ring (csrc/ticket.h). Out: its secrets and its clock. All workers, and with a
controller all replicas, have the same secrets.
Must never: keep a secret beside the keys that are derived from it.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Sequence

from edgefast._csrc import ffi, lib
from edgefast.proxy.tls.ticket_key_rotation import TicketSecret
from edgefast.proxy.tls.ticket_memory import read_ring

__all__ = ["CookieRing"]


class CookieRing:
    """The secrets in force."""

    def __init__(self, memory: mmap.mmap) -> None:
        """`memory`: of a checked ring (`map_ticket_memory`), which stays mapped."""
        self._view = ffi.from_buffer(memory)
        self._ring = ffi.cast("const ef_ticket_ring *", self._view)

    def generation(self) -> int:
        """Return how often the ring was written."""
        return int(lib.ef_ticket_generation(self._ring))

    def secrets(self) -> Sequence[TicketSecret]:
        """Return the secrets in force; none if they change while they are read."""
        try:
            return read_ring(self._ring)
        except ValueError:
            return ()

    def now(self) -> int:
        """Return milliseconds of CLOCK_BOOTTIME."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
