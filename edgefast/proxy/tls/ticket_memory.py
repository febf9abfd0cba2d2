"""Ticket memory: shared memory for session ticket secrets, written by the agent, mapped read-only by every worker.

In: secrets (ticket_key_rotation.py); the predecessor's ring, if it transferred one of this layout.
Out: a descriptor of a ring (csrc/ticket.h), and the secrets in it. A successor copies the secrets
into its own ring, so each ring has one writer, even while both processes serve. The pages are
excluded from core dumps; a transferred descriptor cannot be mapped for writing.
Must never: be written to a disk, or to any output for people.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import mmap
import os
from collections.abc import Sequence
from typing import Any

from edgefast._csrc import ffi, lib
from edgefast.proxy.tls.ticket_key_rotation import TicketSecret

__all__ = ["TicketMemory", "map_ticket_memory", "read_ring"]

log = logging.getLogger(__name__)

#: Who maps it is never left with less than was there (fcntl(2): file seals).
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
#: F_SEAL_FUTURE_WRITE of linux/fcntl.h: the mapping that is there writes on, and no other one will. Linux 5.1.
_SEAL_FUTURE_WRITE = 0x0010


class TicketMemory:
    """Shared memory with the secrets of TLS session tickets: the agent writes, workers read."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("edgefast-tickets", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        size = int(lib.ef_ticket_size())
        os.ftruncate(self.fd, size)
        self._memory = mmap.mmap(self.fd, size)
        self._memory.madvise(mmap.MADV_DONTDUMP)
        for seals in (_SEALS | _SEAL_FUTURE_WRITE, _SEALS):
            with contextlib.suppress(OSError):
                fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals | fcntl.F_SEAL_SEAL)
                break
        self._view = ffi.from_buffer(self._memory)
        if lib.ef_ticket_init(self._view, size) != 0:
            raise ValueError("a ring does not fit")
        self._ring = ffi.cast("ef_ticket_ring *", self._view)

    @classmethod
    def go_on(cls, inherited: int | None) -> TicketMemory:
        """Return a ring with the secrets of the process before, if there are any. Owns `inherited`."""
        ring = cls()
        if inherited is None:
            return ring
        try:
            ring.write(_copy(inherited))
        except (ValueError, OSError) as error:
            log.warning(
                "session tickets: keys of the previous process cannot be used, so its clients "
                "start new TLS sessions: %s",
                error,
            )
        finally:
            os.close(inherited)
        return ring

    @property
    def generation(self) -> int:
        """How often the ring was written."""
        return int(lib.ef_ticket_generation(self._ring))

    def read(self) -> tuple[TicketSecret, ...]:
        """Return the secrets in force."""
        return read_ring(self._ring)

    def write(self, secrets: Sequence[TicketSecret]) -> None:
        """Put these in the place of all others, which are wiped. Raises ValueError for what is no ring's content."""
        made = ffi.new(
            "ef_ticket_secret[]",
            [(one.secret, one.begins, one.ends, one.forgotten) for one in secrets],
        )
        written = lib.ef_ticket_write(self._ring, made, len(secrets))
        lib.ef_ticket_wipe(made, ffi.sizeof(made))
        if written != 0:
            raise ValueError("too many secrets, or times out of order")

    def close(self) -> None:
        """Let go of the memory; workers keep theirs."""
        ffi.release(self._view)
        self._memory.close()
        os.close(self.fd)


def map_ticket_memory(fd: int) -> mmap.mmap:
    """Map a ring to read, kept out of core dumps; `fd` may be closed afterwards. Raises ValueError, OSError."""
    memory = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    try:
        memory.madvise(mmap.MADV_DONTDUMP)
        view = ffi.from_buffer(memory)
        sound = lib.ef_ticket_check(view, len(view)) == 0
        ffi.release(view)
        if not sound:
            raise ValueError("their layout is of another release")
    except BaseException:
        memory.close()
        raise
    return memory


def _copy(fd: int) -> tuple[TicketSecret, ...]:
    if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
        raise ValueError("their size can change")
    with map_ticket_memory(fd) as memory:
        view = ffi.from_buffer(memory)
        try:
            return read_ring(ffi.cast("const ef_ticket_ring *", view))
        finally:
            ffi.release(view)


def read_ring(ring: Any) -> tuple[TicketSecret, ...]:
    found = ffi.new("ef_ticket_secret[]", lib.EF_TICKET_SECRETS)
    try:
        count = lib.ef_ticket_read(ring, found)
        if count < 0:
            raise ValueError("they changed while they were read")
        return tuple(
            TicketSecret(bytes(ffi.buffer(one.secret)), one.begins, one.ends, one.forgotten)
            for one in found[0:count]
        )
    finally:
        lib.ef_ticket_wipe(found, ffi.sizeof(found))
