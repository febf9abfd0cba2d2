"""SpanRecord, ConnectionRecord: a worker's record of one traced request or connection, in the format of edgefast/core/telemetry (span.pyx,
stream_span.pyx).

In: batches of MessagePack.
Out: records; text from clients is bytes, truncated by the engine.
Must never: process a record; otlp_exporter.py exports it.
"""

from __future__ import annotations

import msgspec

__all__ = [
    "AuthRecord",
    "ConnectionRecord",
    "Record",
    "SpanRecord",
    "TryRecord",
    "count_spans",
    "decode_spans",
]


class TryRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One try at a backend; times in microseconds. The order is end_try's."""

    span_id: bytes  # what the backend was told
    number: int  # from 1
    began: int  # after the request's start: a connection was asked for
    took: int
    status: int  # the backend's; 0: none came
    error: bytes  # why the backend's whole answer did not come; b"": it did
    endpoint: bytes  # b"": none was chosen
    protocol: bytes  # "HTTP/1.1"; b"": there was no connection


class AuthRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One call of an authorisation service; times in microseconds. The order is note_asked's."""

    span_id: bytes  # what the service was told, unless it is shared
    cluster: bytes  # b"": none was there to be asked
    began: int  # after the request's start
    took: int
    grpc: int  # it is a service of gRPC
    status: int  # of HTTP, 0: none came; of gRPC its grpc-status, -1: none came
    decision: bytes  # "allowed", "denied", "error"
    error: bytes  # why there is no answer; b"": there is one
    endpoint: bytes  # b"": none was chosen
    protocol: bytes  # "HTTP/1.1"; b"": there was no connection
    shared: int  # it was another request's, which asked the same


class SpanRecord(msgspec.Struct, frozen=True, array_like=True, tag=0, gc=False):
    """One request; times in microseconds. The order is record_span's."""

    trace_id: bytes
    parent_id: bytes  # b"": the trace begins here
    span_id: bytes
    state: bytes
    listener: bytes
    start: int  # since 1970
    took: int
    method: bytes
    target: bytes
    authority: bytes
    user_agent: bytes
    request_id: bytes
    tls: int  # its client speaks https: on this connection, or to a trusted proxy before it
    tls_version: bytes  # "TLSv1.3"; b"": the client speaks none
    tls_cipher: bytes
    tls_group: bytes  # of the key exchange; b"": the library does not tell
    tls_resumed: int
    port: int  # of the listener
    client: bytes
    peer: bytes
    status: int  # 0: there was no answer
    details: bytes  # %RESPONSE_CODE_DETAILS%
    route: bytes
    rule: int  # -1: none
    row: bytes  # label of the row that counted it, as it stands there (csrc/stat.h); b"": the overflow row
    cluster: bytes
    backend_tls: int
    sent_target: bytes  # as the backend gets it
    sent_host: bytes
    bytes_in: int
    bytes_out: int
    protocol: bytes  # "HTTP/1.1"
    grpc_status: int  # -1: it is no gRPC
    tries: tuple[TryRecord, ...]  # the first ones and the last; (): no backend was to be asked
    asked: tuple[AuthRecord, ...] = ()  # the first calls of authorisation services


class ConnectionRecord(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """One connection that was passed on; times in microseconds. The order is record_passage's."""

    trace_id: bytes
    span_id: bytes
    listener: bytes
    protocol: bytes  # "TCP", "TLS"
    start: int  # since 1970
    took: int
    connected: int  # after the start: a backend had taken it; -1: none did
    port: int  # of the listener
    client: bytes  # b"": it has no address
    client_port: int
    server_name: bytes  # of the hello; b"": none, or no TLS
    route: bytes  # "TCPRoute ns/name"; b"": none
    rule: int  # -1: none
    cluster: bytes
    endpoint: bytes  # the one that was asked last; b"": none
    tries: int  # endpoints that were asked
    received: int  # bytes from the client
    sent: int  # ... and to it
    end: bytes  # a word of docs/guides/tcp-udp-tls.md


#: What a batch has.
Record = SpanRecord | ConnectionRecord

_DECODER: msgspec.msgpack.Decoder[list[Record]] = msgspec.msgpack.Decoder(list[Record])


def decode_spans(batch: bytes) -> list[Record]:
    """Read a batch; msgspec.MsgspecError when it is none."""
    return _DECODER.decode(batch)


def count_spans(batch: bytes) -> int:
    """Tell how many spans a batch has, from its head alone (MessagePack array 16)."""
    return int.from_bytes(batch[1:3], "big")
