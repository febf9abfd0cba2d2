"""A ring of ticket keys that contexts of this process use from now on, as a worker's do.

In: nothing. Out: the ring, whose secrets may be replaced. Its mapping stays for as long as the process lives.
"""

from __future__ import annotations

import mmap
import time

from edgefast.core import use_tickets
from edgefast.proxy.tls.ticket_key_rotation import PERIOD, TicketSecret
from edgefast.proxy.tls.ticket_memory import TicketMemory


def make_ring() -> TicketMemory:
    """A ring with a secret that is in force."""
    ring = TicketMemory()
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    ring.write([TicketSecret(bytes(32), now, now + PERIOD, now + 2 * PERIOD)])
    use_tickets(mmap.mmap(ring.fd, 0, prot=mmap.PROT_READ))
    return ring
