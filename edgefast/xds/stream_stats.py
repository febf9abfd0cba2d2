"""StreamStats: the state of the config stream, for metrics and dumps.

In: values that the client counts.
Out: plain numbers.
Must never: import gRPC; a process that shows these numbers may not have it.
"""

from __future__ import annotations

import msgspec

__all__ = ["StreamStats"]


class StreamStats(msgspec.Struct, kw_only=True):
    """Counters since start; times are Unix seconds, 0 for never."""

    server: str  # as it was given: HOST:PORT
    connected: bool = False
    streams: int = 0  # opened
    failures: int = 0  # streams that could not be opened, or ended
    failed: str = ""  # why the last one did; "" while connected
    commits: int = 0  # batches taken in
    committed_at: float = 0.0  # the last one
    received: int = 0  # bytes of resources
    nacks: int = 0  # answers that refused something
    mismatches: int = 0  # digests that were another one
    from_disk: bool = False  # the table served is the last good one, not yet confirmed
