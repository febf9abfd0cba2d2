"""Head: a request head as the proxy reads it: scanned and normalised by the same C code (csrc/head*.c, csrc/path.c).

In: bytes of a request head, the port's HttpSettings, the peer's address. Out: `Head`, or `Refusal`
with the status that the proxy answers.
Must never: read a head in its own way; the proxy serves the result of the scan.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.explain.client import find_scheme
from edgefast.table.match import Request

_UNDERSCORE = {
    "Reject": lib.EF_UNDERSCORE_REJECT,
    "Allow": lib.EF_UNDERSCORE_ALLOW,
    "Drop": lib.EF_UNDERSCORE_DROP,
}

_RAW = {"Reject": lib.EF_RAW_REJECT, "Allow": lib.EF_RAW_ALLOW}

#: Fixes of heads that edgefast refuses for their version or their missing Host.
_FIXES = {
    lib.EF_E_HTTP10: "send HTTP/1.1, or set http10 of EdgeProxy spec.http",
    lib.EF_E_NO_HOST: "send a Host header; for HTTP/1.0 clients set http10.defaultHost of EdgeProxy spec.http",
}


class Refusal(msgspec.Struct, frozen=True):
    """What the proxy answers before it looks at any route."""

    status: int
    check: str  # "head", "path", "path_parameters" or "escaped_slashes"
    why: str
    location: str = ""  # of the redirect for escaped slashes
    grpc: bool = False  # the message is a request, and one of gRPC
    fix: str = ""  # "": that of the check


class Line(msgspec.Struct, frozen=True):
    """One header line."""

    name: bytes
    value: bytes
    id: int  # enum ef_header_id
    flags: int  # EF_SPAN_*
    raw: bytes  # the whole line with its CRLF


class Head(msgspec.Struct, frozen=True):
    """A head that is sound."""

    method: bytes
    path: bytes  # as it is matched; "*" of OPTIONS * as it is
    target: bytes  # path and query as sent
    query: bytes | None  # None: there is no "?"
    host: str  # without port and final dot, lower case
    host_sent: bytes  # the same, case as sent
    authority: bytes  # the value of Host, without the dot behind its name
    lines: tuple[Line, ...]
    upgrade: bool
    te_trailers: bool
    chunked: bool
    content_length: int
    is_options: bool
    grpc: bool  # also gRPC-Web where that is translated
    web: str = ""  # ... then the content type that the backend gets; "": it gets what came
    web_text: bool = False  # ... and the body was Base64
    http10: bool = False

    def request(self) -> Request:
        """Return what the matcher sees."""
        return Request(
            method=self.method.decode(),
            path="/" if self.path == b"*" else self.path.decode(),
            query=_text(self.query or b""),
            headers=tuple((_text(one.name), _text(one.value)) for one in self.lines),
        )


def scan_head(
    raw: bytes, settings: ir.HttpSettings, *, tls: bool, source: str = "127.0.0.1"
) -> Head | Refusal:
    """Scan a whole head as a port with these settings does."""
    head, limits = ffi.new("ef_head *"), ffi.new("ef_head_limits *")
    limits.head = min(settings.request_head, lib.EF_MAX_HEAD)
    limits.line = min(settings.request_line, lib.EF_MAX_HEAD)
    limits.count = min(settings.header_count, lib.EF_MAX_HEADERS)
    limits.underscore = _UNDERSCORE[settings.underscores]
    limits.raw = _RAW[settings.raw_characters]
    default = settings.http10_host.encode()
    if settings.http10:
        limits.http10 = lib.EF_HTTP10_ALLOW if default else lib.EF_HTTP10_WITH_HOST
    lib.ef_head_reset(head)
    length = lib.ef_head_scan_request(head, limits, raw, len(raw))
    if length >= 0 and head.host_len == 0:
        room = length + max(head.authority_len, len(default)) + lib.EF_HOST_LINE
        out = ffi.new("uint8_t[]", room)
        size = lib.ef_head_add_host(head, raw, default, len(default), out)
        raw = bytes(ffi.buffer(out, size))
        lib.ef_head_reset(head)
        length = lib.ef_head_scan_request(head, limits, raw, len(raw))
    if length < 0:
        if length == lib.EF_NEED_MORE:  # line breaks in what was written: the head ends elsewhere
            return Refusal(408, "head", "the request head is not complete")
        why = ffi.string(lib.ef_head_error_text(head.error)).decode()
        return Refusal(head.status, "head", why, fix=_FIXES.get(head.error, ""))
    if head.notes & lib.EF_NOTE_HOST_DOT:
        changed = ffi.new("uint8_t[]", raw)
        lib.ef_head_drop_host_dot(head, changed)
        raw = bytes(ffi.buffer(changed, len(raw)))
    upgrade = bool(head.upgrade) and head.body == lib.EF_BODY_NONE
    target = raw[head.target_off : head.target_off + head.target_len]
    path = b"/" if head.target_empty_path else target[: head.path_len]
    query = target[head.path_len + 1 :] if head.target_len > head.path_len else None
    authority = raw[head.authority_off : head.authority_off + head.authority_len]
    lines = tuple(_read_line(raw, head.spans[at]) for at in range(head.n_spans))
    https = find_scheme(lines, source, settings.client_address, tls=tls)
    normal = _normalise(path, query, authority, settings, https=https)
    grpc = head.grpc == lib.EF_GRPC or (head.grpc != lib.EF_GRPC_NONE and settings.grpc.web)
    if isinstance(normal, Refusal):
        return msgspec.structs.replace(normal, grpc=grpc)
    host = raw[head.host_off : head.host_off + head.host_len]
    text = head.grpc == lib.EF_GRPC_WEB_TEXT
    return Head(
        method=raw[head.method_off : head.method_off + head.method_len],
        path=normal,
        target=target,
        query=query,
        host=host.decode().lower(),
        host_sent=host,
        authority=authority,
        lines=lines,
        upgrade=upgrade,
        te_trailers=bool(head.te_trailers),
        chunked=head.body == lib.EF_BODY_CHUNKED,
        content_length=head.content_length,
        is_options=head.method == lib.EF_M_OPTIONS,
        grpc=grpc,
        web=_translate_type(lines, text=text) if grpc and head.grpc != lib.EF_GRPC else "",
        web_text=text and grpc,
        http10=head.version_minor == 0,
    )


def _translate_type(lines: tuple[Line, ...], *, text: bool) -> str:
    """Return the content type of gRPC that says what one of gRPC-Web does (core/exchange/grpcweb.pyx)."""
    value = next(one.value for one in reversed(lines) if one.name.lower() == b"content-type")
    size = len("application/grpc-web-text" if text else "application/grpc-web")
    return f"application/grpc{_text(value[size:])}"


def _normalise(
    path: bytes, query: bytes | None, authority: bytes, settings: ir.HttpSettings, *, https: bool
) -> bytes | Refusal:
    if path == b"*":
        return path
    path = _encode_raw(path)
    out, size = ffi.new("uint8_t[]", len(path) + 1), ffi.new("size_t *")
    escaped = ffi.new("int *")
    result = lib.ef_path_normalize(path, len(path), out, len(path), size, escaped)
    if result < 0:
        return Refusal(400, "path", "the path is not valid: bad escapes, %00 or a dot segment")
    if b";" in path and settings.path_parameters == "reject":
        return Refusal(400, "path_parameters", "the path has parameters (;)")
    if result == lib.EF_PATH_WRITTEN:
        path = bytes(ffi.buffer(out, size[0]))
    if settings.path_parameters == "strip":
        path = strip_parameters(path)
    if not escaped[0] or settings.escaped_slashes == "KeepUnchanged":
        return path
    if settings.escaped_slashes == "Reject":
        return Refusal(400, "escaped_slashes", "the path has %2F or %5C in it")
    if lib.ef_path_unescape_slashes(path, len(path), out, len(path), size) < 0:
        return Refusal(400, "escaped_slashes", "the path is not valid with its %2F and %5C read")
    location = b"%b://%b%b" % (
        b"https" if https else b"http",
        authority,
        bytes(ffi.buffer(out, size[0])),
    )
    if query:
        location += b"?" + query
    why = "the path has %2F or %5C in it; clients are sent to the path without"
    return Refusal(307, "escaped_slashes", why, _text(location))


def strip_parameters(path: bytes, start: int = 0) -> bytes:
    """Return a path in normal form without the parameters of its segments, from byte `start` on."""
    if b";" not in path[start:]:
        return path
    buf = ffi.new("uint8_t[]", path)
    return bytes(ffi.buffer(buf, lib.ef_path_strip_parameters(buf, len(path), start)))


def _encode_raw(path: bytes) -> bytes:
    """Return a path for normalisation: raw characters that the scan accepts become %XX."""
    out = ffi.new("uint8_t[]", 3 * len(path))
    return bytes(ffi.buffer(out, lib.ef_path_encode_raw(path, len(path), out, 3 * len(path))))


def _read_line(raw: bytes, span: Any) -> Line:
    return Line(
        name=raw[span.name_off : span.name_off + span.name_len],
        value=raw[span.val_off : span.val_off + span.val_len],
        id=span.id,
        flags=span.flags,
        raw=raw[span.name_off : span.line_end],
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
