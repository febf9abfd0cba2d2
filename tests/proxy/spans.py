"""A request that was traced: a server span with two tries, the second of them good; and a connection.

In: nothing. Out: `SPAN` and its tries, `CONNECTION`; a test replaces what it is about; batches as the engine packs them. Must never: be what a
test relies on unless it says so.
"""

from __future__ import annotations

import msgspec

from edgefast.proxy.traces.span_record import ConnectionRecord, Record, SpanRecord, TryRecord

FIRST = TryRecord(
    span_id=b"\x04" * 8, number=1, began=1_000, took=2_000, status=0, error=b"connection_termination", endpoint=b"10.1.1.1:9000",
    protocol=b"HTTP/1.1",
)  # fmt: skip
SECOND = TryRecord(
    span_id=b"\x05" * 8, number=2, began=4_000, took=5_000, status=200, error=b"", endpoint=b"[::1]:9000",
    protocol=b"HTTP/1.1",
)  # fmt: skip
SPAN = SpanRecord(
    trace_id=b"\x01" * 16, parent_id=b"\x02" * 8, span_id=b"\x03" * 8, state=b"a=1,b=2",
    listener=b"ns/gw/http", start=1_800_000_000_000_000, took=9_000, method=b"GET",
    target=b"/a%20b?x=1&sig=secret&y=2", authority=b"shop.test:8080", user_agent=b"curl/8", request_id=b"id-1", tls=1,
    tls_version=b"TLSv1.3", tls_cipher=b"TLS_AES_256_GCM_SHA384", tls_group=b"x25519", tls_resumed=1, port=443,
    client=b"203.0.113.9", peer=b"10.0.0.1", status=200, details=b"via_upstream", route=b"ns/web", rule=2, row=b"ns/web\t2",
    cluster=b"service/ns/web/80", backend_tls=0, sent_target=b"/b?x=1&sig=secret", sent_host=b"inner.test:81", bytes_in=3,
    bytes_out=5, protocol=b"HTTP/2", grpc_status=-1, tries=(FIRST, SECOND),
)  # fmt: skip
CONNECTION = ConnectionRecord(
    trace_id=b"\x07" * 16, span_id=b"\x08" * 8, listener=b"ns/gw/db", protocol=b"TLS", start=1_800_000_000_000_000, took=9_000,
    connected=1_500, port=5432, client=b"203.0.113.9", client_port=40_000, server_name=b"db.test", route=b"TLSRoute ns/db", rule=0,
    cluster=b"service/ns/db/5432", endpoint=b"10.1.1.1:5432", tries=2, received=3, sent=5, end=b"done",
)  # fmt: skip


def pack(*spans: Record) -> bytes:
    """A batch as the engine makes it: an array 16."""
    parts = b"".join(map(msgspec.msgpack.encode, spans))
    return b"\xdc" + len(spans).to_bytes(2, "big") + parts
