"""csrc's answers as values that compare with those of the references.

In: bytes, and the offsets at which they are cut into pieces. Out: `Head`, `Refusal`, None, `Body`, bytes. Every piece is handed
over in a buffer of exactly its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from csrc.reference import Field, Head, Limits, Refusal
from csrc.reference_chunk import Body
from edgefast._csrc import ffi, lib

BODIES = {
    lib.EF_BODY_NONE: "none",
    lib.EF_BODY_LENGTH: "length",
    lib.EF_BODY_CHUNKED: "chunked",
    lib.EF_BODY_EOF: "eof",
}
UNDERSCORES = {
    "reject": lib.EF_UNDERSCORE_REJECT,
    "allow": lib.EF_UNDERSCORE_ALLOW,
    "drop": lib.EF_UNDERSCORE_DROP,
}
HTTP10 = {
    "reject": lib.EF_HTTP10_REJECT,
    "with_host": lib.EF_HTTP10_WITH_HOST,
    "allow": lib.EF_HTTP10_ALLOW,
}
NOTES = {
    lib.EF_NOTE_PARAMETERS: "parameters",
    lib.EF_NOTE_RAW: "raw",
    lib.EF_NOTE_HOST_DOT: "host_dot",
}


def scan(
    data: bytes, limits: Limits, method: bytes | None = None, cuts: Sequence[int] = ()
) -> Head | Refusal | None:
    """Scan growing prefixes that end at `cuts`, then all. `method`: of the request that a response answers."""
    head = ffi.new("ef_head *")
    bounds = ffi.new(
        "ef_head_limits *",
        (
            limits.head,
            limits.line,
            limits.count,
            UNDERSCORES[limits.underscore],
            limits.raw,
            HTTP10[limits.http10],
        ),
    )
    lib.ef_head_reset(head)
    result = lib.EF_NEED_MORE
    for end in [*sorted(cuts), len(data)]:
        if result != lib.EF_NEED_MORE:
            break
        piece = ffi.new("uint8_t[]", data[:end])
        if method is None:
            result = lib.ef_head_scan_request(head, bounds, piece, end)
        else:
            number = lib.ef_method_lookup(method, len(method))
            result = lib.ef_head_scan_response(head, bounds, piece, end, number)
    if result == lib.EF_NEED_MORE:
        return None
    if result == lib.EF_BAD:
        return Refusal(ffi.string(lib.ef_head_error_name(head.error)).decode(), head.status)
    assert result == head.head_len
    return _read_head(data, head, is_request=method is None)


def _read_head(data: bytes, head: Any, is_request: bool) -> Head:
    def text(at: int, length: int) -> bytes:
        return data[at : at + length]

    spans = [head.spans[i] for i in range(head.n_spans)]
    starts = [span.name_off for span in spans] + [head.head_len - 2]
    assert [span.line_end for span in spans] == starts[1:]
    target = text(head.target_off, head.target_len)
    if is_request:
        assert ffi.string(lib.ef_method_name(head.method)) == text(head.method_off, head.method_len)
    return Head(
        length=head.head_len,
        method=text(head.method_off, head.method_len),
        target=target,
        path=target[: head.path_len],
        scheme=head.absolute_scheme,
        empty_path=bool(head.target_empty_path),
        host=text(head.host_off, head.host_len),
        port=head.host_port,
        authority=text(head.authority_off, head.authority_len),
        notes=frozenset(word for bit, word in NOTES.items() if head.notes & bit),
        status=head.response_status,
        minor=head.version_minor,
        body=BODIES[head.body],
        content_length=head.content_length,
        keep_alive=bool(head.keep_alive),
        upgrade=bool(head.upgrade),
        expect_continue=bool(head.expect_continue),
        te_trailers=bool(head.te_trailers),
        fields=[
            Field(
                text(span.name_off, span.name_len),
                text(span.val_off, span.val_len),
                hop=bool(span.flags & lib.EF_SPAN_HOP),
                nominated=bool(span.flags & lib.EF_SPAN_NOMINATED),
            )
            for span in spans
        ],
    )


def decode_chunks(data: bytes, cuts: Sequence[int] = ()) -> Body:
    """Feed the pieces between `cuts`. `used` is 0 unless the body ended."""
    chunk = ffi.new("ef_chunk *")
    used = ffi.new("size_t *")
    span = ffi.new("uint8_t **")
    span_len = ffi.new("size_t *")
    lib.ef_chunk_reset(chunk)
    body = Body()
    edges = [0, *sorted(cuts), len(data)]
    for start, end in zip(edges, edges[1:], strict=False):
        piece = ffi.new("uint8_t[]", data[start:end])
        at = 0
        while True:
            result = lib.ef_chunk_feed(chunk, piece + at, end - start - at, used, span, span_len)
            at += used[0]
            if result == lib.EF_CHUNK_DATA:
                body.data += bytes(ffi.buffer(span[0], span_len[0]))
            elif result == lib.EF_CHUNK_TRAILER:
                body.trailers += bytes(ffi.buffer(span[0], span_len[0]))
            else:
                break
        if result == lib.EF_CHUNK_DONE:
            return Body("done", body.data, start + at, body.trailers)
        if result == lib.EF_BAD:
            return Body("bad", body.data)
        assert at == end - start
    return body


def normalize(path: bytes) -> tuple[bytes | None, bool]:
    """The normal form, None when invalid, and whether the path holds an escaped slash."""
    out = ffi.new("uint8_t[]", max(len(path), 1))
    out_len = ffi.new("size_t *")
    escaped = ffi.new("int *")
    result = lib.ef_path_normalize(path, len(path), out, len(path), out_len, escaped)
    if result == lib.EF_BAD:
        return None, False
    if result == lib.EF_PATH_SAME:
        return path, bool(escaped[0])
    normal = bytes(ffi.buffer(out, out_len[0]))
    assert normal != path
    return normal, bool(escaped[0])


def unescape_slashes(path: bytes) -> bytes | None:
    """The normal form with %2F and %5C as slashes."""
    out = ffi.new("uint8_t[]", max(len(path), 1))
    out_len = ffi.new("size_t *")
    if lib.ef_path_unescape_slashes(path, len(path), out, len(path), out_len) == lib.EF_BAD:
        return None
    return bytes(ffi.buffer(out, out_len[0]))


def strip_parameters(path: bytes, start: int = 0) -> bytes:
    """A path in normal form without the parameters of its segments, from `start` on."""
    buf = ffi.new("uint8_t[]", path or b"\0")
    return bytes(ffi.buffer(buf, lib.ef_path_strip_parameters(buf, len(path), start)))


def encode_raw(path: bytes) -> bytes:
    """The path with characters that no URI path has as %XX."""
    out = ffi.new("uint8_t[]", 3 * len(path) + 1)
    return bytes(ffi.buffer(out, lib.ef_path_encode_raw(path, len(path), out, 3 * len(path))))


def drop_host_dot(data: bytes, limits: Limits) -> bytes:
    """The bytes of an accepted request without the dot behind its Host."""
    head = ffi.new("ef_head *")
    bounds = ffi.new("ef_head_limits *", (limits.head, limits.line, limits.count, 1, limits.raw))
    buf = ffi.new("uint8_t[]", data)
    lib.ef_head_reset(head)
    assert lib.ef_head_scan_request(head, bounds, buf, len(data)) > 0
    lib.ef_head_drop_host_dot(head, buf)
    return bytes(ffi.buffer(buf, len(data)))


def decode_query(text: bytes) -> bytes:
    """A decoded query name or value."""
    out = ffi.new("uint8_t[]", max(len(text), 1))
    return bytes(ffi.buffer(out, lib.ef_query_decode(text, len(text), out, len(text))))
