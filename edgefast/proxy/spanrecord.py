"""SpanRecord: what a worker tells of one traced request, as edgefast/core/span.pyx packs it.

In: batches of MessagePack. Out: records; text that clients chose is bytes, cut by the engine.
Must never: be more than a description; what becomes of it is otlp.py's.
"""

from __future__ import annotations

import msgspec

__all__ = ["SpanRecord", "count_spans", "decode_spans"]


class SpanRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One request; times in microseconds. The order is record_span's."""

    trace_id: bytes
    parent_id: bytes  # b"": the trace begins here
    span_id: bytes
    client_id: bytes  # b"": nothing was sent to a backend
    state: bytes
    listener: bytes
    start: int  # since 1970
    took: int
    forwarded: int  # after start
    method: bytes
    target: bytes
    authority: bytes
    user_agent: bytes
    request_id: bytes
    tls: int
    port: int  # of the listener
    client: bytes
    peer: bytes
    status: int  # 0: there was no answer
    details: bytes  # %RESPONSE_CODE_DETAILS%
    route: bytes
    rule: int  # -1: none
    cluster: bytes
    endpoint: bytes
    backend_tls: int
    tries: int
    bytes_in: int
    bytes_out: int


_DECODER: msgspec.msgpack.Decoder[list[SpanRecord]] = msgspec.msgpack.Decoder(list[SpanRecord])


def decode_spans(batch: bytes) -> list[SpanRecord]:
    """Read a batch; msgspec.MsgspecError when it is none."""
    return _DECODER.decode(batch)


def count_spans(batch: bytes) -> int:
    """Tell how many spans a batch has, from its head alone (MessagePack array 16)."""
    return int.from_bytes(batch[1:3], "big")
