"""Health memory of clusters and endpoints: created by the agent, mapped by every worker (csrc/health.h).

Behind it are the requests in progress of each client, for limits of this machine (csrc/limit_local.h).

In: the number of workers, and the worker that died.
Out: a descriptor. A new proxy starts with new memory and measures backends again. While it and its
predecessor both serve, each counts its own traffic.
Must never: write to counters of workers, except to clear those of a dead worker.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import time
from typing import Any

from edgefast._csrc import ffi, lib

__all__ = ["HealthMemory"]

log = logging.getLogger(__name__)

#: Who maps it is never left with less than was there (fcntl(2): file seals).
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class HealthMemory:
    """The segment of one proxy. Its seats are the workers' numbers; one more is the agent's."""

    def __init__(self, workers: int, records: int = lib.EF_HEALTH_RECORDS) -> None:
        """Make it; it takes memory as it is used. Raises ValueError when there are too many workers."""
        self.agent_seat = workers
        extent = int(lib.ef_health_size(records, workers + 1))
        size = extent + int(lib.ef_local_size(lib.EF_LOCAL_BUCKETS))
        self.fd = os.memfd_create("edgefast-health", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SEALS)
        self._memory = mmap.mmap(self.fd, size)
        self._view: Any = ffi.from_buffer(self._memory)
        if lib.ef_health_init(self._view, extent, records, workers + 1) != 0:
            self.close()
            raise ValueError(f"no memory for {workers} workers (at most {lib.EF_HEALTH_SEATS - 1})")
        self._segment: Any = ffi.cast("ef_health *", self._view)
        self._in_progress: Any = ffi.cast("ef_limit *", self._view + extent)
        seed = os.urandom(lib.EF_LIMIT_SEED)
        lib.ef_local_init(self._in_progress, size - extent, lib.EF_LOCAL_BUCKETS, seed)

    @property
    def used(self) -> int:
        """Clusters and endpoints that any worker has to do with."""
        return int(lib.ef_health_used(self._segment))

    def forget(self, worker: int) -> None:
        """A worker is gone: nothing of what it had counts any more."""
        lib.ef_held_forget(self._in_progress, worker, int(time.clock_gettime(time.CLOCK_BOOTTIME)))
        if lib.ef_health_forget(self._segment, worker) != 0:
            log.error(
                "health: the backend counters of ended worker %d could not be removed", worker
            )

    def close(self) -> None:
        """Let go of the memory."""
        ffi.release(self._view)
        self._memory.close()
        os.close(self.fd)
