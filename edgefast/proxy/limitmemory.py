"""Memory for the counters of rate limits: made by the agent, mapped by every worker.

In: nothing. Out: a descriptor of a fresh segment (csrc/limit.h). It outlives workers, so that counts
go on when one is replaced; it ends with the agent. Must never be written to by the agent afterwards.
"""

from __future__ import annotations

import mmap
import os

from edgefast._csrc import ffi, lib

__all__ = ["LimitMemory"]


class LimitMemory:
    """The machine's segment."""

    def __init__(self, buckets: int = lib.EF_LIMIT_BUCKETS) -> None:
        size = int(lib.ef_limit_size(buckets))
        self.fd = os.memfd_create("edgefast-limits", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, size)
        with mmap.mmap(self.fd, size) as memory:
            seed = os.urandom(lib.EF_LIMIT_SEED)
            view = ffi.from_buffer(memory)
            made = lib.ef_limit_init(view, size, buckets, seed)
            ffi.release(view)
            if made != 0:
                raise ValueError(f"no counter segment of {buckets} buckets")

    def close(self) -> None:
        """Let go of the memory."""
        os.close(self.fd)
