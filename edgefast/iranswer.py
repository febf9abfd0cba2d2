"""What policies make of requests and answers on their way, in the IR: faults, other answers, compression.

In: written by `translate` only. Out: parts of `Traffic` (irpolicy.py). Durations are milliseconds, sizes are bytes, shares are millionths.
"""

from __future__ import annotations

from typing import Literal

from edgefast.irtelemetry import Struct

Encoding = Literal["br", "gzip", "zstd"]


class Fault(Struct, frozen=True, gc=False):
    """Requests that wait or are refused on purpose (BackendTrafficPolicy faultInjection)."""

    delay: int = 0
    delay_share: int = 0
    status: int = (
        0  # 0: none is refused; a gRPC request is answered with what it becomes (gRPC over HTTP/2)
    )
    grpc_status: int | None = None  # of gRPC requests, in place of `status`
    abort_share: int = 0


class ResponseOverride(Struct, frozen=True, gc=False):
    """Another answer in place of one (BackendTrafficPolicy responseOverride)."""

    statuses: tuple[tuple[int, int], ...]  # from, to, both included
    status: int = 0  # 0: as it was
    content_type: str = ""
    body: bytes = b""
    location: str = ""  # not "": a redirect there, `status` is 301 or 302


class Compression(Struct, frozen=True, gc=False):
    """Encodings for answers that have none (BackendTrafficPolicy compression; RFC 9110 8.4.1)."""

    encodings: tuple[Encoding, ...]  # in order of preference where the client has none
    min_size: int = 1024  # of answers that say their length
