"""The head scan again, slow and obvious: regular expressions and `ipaddress` instead of tables and spans.

In: all bytes received so far, limits. Out: `Head`, `Refusal` or None (more bytes needed), comparable with what `native.py`
makes of csrc's answers. The rules are those of csrc/head.h. Must never share code or tables with csrc.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
TARGET = re.compile(rb"[!$-;=?-\[\]_a-z~]*")
RAW_TARGET = re.compile(rb"[!$-;=@-\[\]_a-z~|]*(?:\?[!\"$-;=?-~]*)?")
HOST = re.compile(rb"(?P<host>\[[^\]]*\]|[A-Za-z0-9\-._~]+)(?::(?P<port>[0-9]{1,5}))?")
METHODS = set(
    b"ACL BIND CHECKOUT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL "
    b"MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE "
    b"SUBSCRIBE UNBIND UNLINK UNLOCK UNSUBSCRIBE".split()
)
HOP = set(
    b"connection http2-settings keep-alive proxy-connection te trailer transfer-encoding upgrade".split()
)
KNOWN = HOP | set(
    b"content-length date expect host origin proxy-authenticate server via x-forwarded-for "
    b"x-forwarded-proto x-request-id access-control-request-method".split()
)
FORWARDING = set(
    b"forwarded x-real-ip x-original-url x-original-uri x-original-host x-rewrite-url".split()
)
STATUS = {
    "unknown_method": 501,
    "refused_method": 405,
    "http10": 426,
    "version_unsupported": 505,
    "line_too_long": 414,
    "head_too_large": 431,
    "too_many_headers": 431,
    "coding_unknown": 501,
    "expect": 417,
}


@dataclass(frozen=True)
class Limits:
    """Bytes of the head, bytes of the request line, number of lines; underscore: reject, allow or drop; raw: accept characters that browsers send raw;
    http10: reject, with_host or allow."""

    head: int = 32768
    line: int = 8192
    count: int = 100
    underscore: str = "reject"
    raw: bool = False
    http10: str = "reject"


@dataclass(frozen=True)
class Field:
    """One header line; flags are those that keep it from being forwarded."""

    name: bytes
    value: bytes
    hop: bool = False
    nominated: bool = False


@dataclass
class Head:
    """An accepted head: what a proxy acts on."""

    length: int = 0
    method: bytes = b""
    target: bytes = b""
    path: bytes = b""
    scheme: int = 0
    empty_path: bool = False
    host: bytes = b""
    port: int = 0
    authority: bytes = b""
    notes: frozenset[str] = frozenset()
    status: int = 0
    minor: int = 1
    body: str = "none"
    content_length: int = 0
    keep_alive: bool = True
    upgrade: bool = False
    expect_continue: bool = False
    te_trailers: bool = False
    fields: list[Field] = field(default_factory=list)


@dataclass(frozen=True)
class Refusal:
    """A refused head: the metric label of the reason and the answer."""

    error: str
    status: int


class Fault(Exception):
    """The head is wrong."""


class Incomplete(Exception):
    """The head is not wrong yet."""


def scan_request(data: bytes, limits: Limits) -> Head | Refusal | None:
    """The outcome for these bytes, None while it is open."""
    try:
        return read_request(data, limits)
    except Incomplete:
        return None
    except Fault as fault:
        return Refusal(str(fault), STATUS.get(str(fault), 400))


def scan_response(data: bytes, limits: Limits, method: bytes) -> Head | Refusal | None:
    """The same for a response to a request of `method`."""
    try:
        return read_response(data, limits, method)
    except Incomplete:
        return None
    except Fault as fault:
        return Refusal(str(fault), 502)


def take_line(data: bytes, start: int, cap: int, too_long: str, describe: str | None) -> bytes:
    """The line at `start` without its CRLF; `describe` names a control byte's fault in a first line."""
    window = data[:cap]
    found = CONTROL.search(window, start)
    ending = window[found.start() : found.start() + 2] if found else b""
    if found is None or ending == b"\r":
        raise Fault(too_long) if len(data) >= cap else Incomplete
    line = window[start : found.start()]
    if ending == b"\r\n":
        return line
    if describe is None and line[:1] in (b" ", b"\t"):
        raise Fault("fold")
    if ending[:1] in (b"\r", b"\n"):
        raise Fault("bare_lf")
    raise Fault(describe or ("value" if b":" in line else "name"))


def read_request(data: bytes, limits: Limits) -> Head:
    head = Head()
    start = 2 if data[:2] == b"\r\n" and limits.head >= 2 else 0
    line_cap = start + limits.line + 2
    too_long = "line_too_long" if line_cap <= limits.head else "head_too_large"
    line = take_line(data, start, min(line_cap, limits.head), too_long, "line")
    version = read_request_line(head, line, limits)
    read_fields(head, data, start + len(line) + 2, limits, is_request=True)
    names = [f.name.lower() for f in head.fields]
    if version == b"HTTP/1.0":
        return read_http10(head, names, limits)
    if b"host" not in names:
        raise Fault("no_host")
    check_lengths(names, head)
    expectations = [f.value.lower() for f in head.fields if f.name.lower() == b"expect"]
    if head.body != "none":
        if any(e != b"100-continue" for e in expectations):
            raise Fault("expect")
        head.expect_continue = bool(expectations)
    options = connection_options(head, with_proxy=True)
    head.keep_alive = b"close" not in options
    protocols = [e for f in head.fields if f.name.lower() == b"upgrade" for e in elements(f.value)]
    named = [p.lower().split(b"/")[0] for p in protocols if p]
    head.upgrade = (
        bool(named)
        and b"upgrade" in connection_options(head, with_proxy=False)
        and not any(p.startswith(b"h2") or p == b"http" for p in named)
    )
    mark_nominated(head)
    return head


def read_http10(head: Head, names: list[bytes], limits: Limits) -> Head:
    """The rest of a request in HTTP/1.0: no Expect, no Upgrade, no trailers."""
    if b"transfer-encoding" in names:
        raise Fault("transfer_encoding")
    if limits.http10 == "reject":
        raise Fault("http10")
    if b"host" not in names and not head.scheme and limits.http10 != "allow":
        raise Fault("no_host")
    check_lengths(names, head)
    head.minor = 0
    head.te_trailers = False
    head.keep_alive = (
        b"keep-alive" in connection_options(head, with_proxy=False)
        and b"close" not in connection_options(head, with_proxy=True)
        and (head.method in (b"GET", b"HEAD") or b"content-length" in names)
    )
    mark_nominated(head)
    return head


def read_request_line(head: Head, line: bytes, limits: Limits) -> bytes:
    if not line:
        raise Fault("line")
    method = re.match(TOKEN, line)
    if method is None:
        raise Fault("method")
    rest = line[method.end() :]
    if not rest:
        raise Fault("line")
    if rest[:1] != b" ":
        raise Fault("method")
    parts = rest[1:].split(b" ", 1)
    if parts == [b""] or (len(parts) == 2 and not parts[0]):
        raise Fault("line")
    if len(parts) == 1:
        raise Fault("http09")
    target, version = parts
    if not re.fullmatch(rb"HTTP/[0-9]\.[0-9]", version) or version[5:6] == b"0":
        raise Fault("version")
    if version not in (b"HTTP/1.0", b"HTTP/1.1"):
        raise Fault("version_unsupported")
    head.method = method[0]
    if head.method in (b"CONNECT", b"TRACE"):
        raise Fault("refused_method")
    if head.method not in METHODS:
        raise Fault("unknown_method")
    read_target(head, target, RAW_TARGET if limits.raw else TARGET)
    return version


def read_target(head: Head, target: bytes, allowed: re.Pattern[bytes]) -> None:
    if not target.startswith(b"/") and not (target == b"*" and head.method == b"OPTIONS"):
        absolute = re.match(rb"(?i)(https?)://([^/?]*)", target)
        if absolute is None:
            raise Fault("target")
        for byte in absolute[2]:  # whichever comes first
            if byte == ord("@"):
                raise Fault("authority")
            if not TARGET.fullmatch(bytes([byte])):
                raise Fault("target")
        if not absolute[2]:
            raise Fault("authority")
        head.scheme = 2 if len(absolute[1]) == 5 else 1
        head.authority = absolute[2]
        target = target[absolute.end() :]
        head.empty_path = not target.startswith(b"/")
    if not allowed.fullmatch(target):
        raise Fault("target")
    head.target = target
    head.path = target.split(b"?", 1)[0]
    head.notes = frozenset(
        note for byte, note in ((b";", "parameters"), (b"|", "raw")) if byte in head.path
    )


def read_response(data: bytes, limits: Limits, method: bytes) -> Head:
    head = Head()
    line = take_line(data, 0, limits.head, "head_too_large", "status")
    if len(line) < 12:
        raise Fault("status")
    if line[:8] not in (b"HTTP/1.0", b"HTTP/1.1"):
        raise Fault("version")
    status = re.fullmatch(rb"(?s) ([1-9][0-9]{2})(?: .*)?", line[8:])
    if status is None:
        raise Fault("status")
    head.status = int(status[1])
    head.minor = int(line[7:8])
    read_fields(head, data, len(line) + 2, limits, is_request=False)
    names = [f.name.lower() for f in head.fields]
    if head.minor == 0 and b"transfer-encoding" in names:
        raise Fault("transfer_encoding")
    check_lengths(names, head)
    options = connection_options(head, with_proxy=True)
    head.keep_alive = b"close" not in options and (head.minor == 1 or b"keep-alive" in options)
    head.upgrade = head.status == 101
    if method == b"HEAD" or head.status < 200 or head.status in (204, 304):
        if head.body != "none" and (head.status < 200 or head.status == 204):
            head.keep_alive = False
        head.body = "none"
        head.content_length = 0
    elif not {b"content-length", b"transfer-encoding"} & set(names):
        head.body = "eof"
        head.keep_alive = False
    mark_nominated(head)
    return head


def read_fields(head: Head, data: bytes, start: int, limits: Limits, is_request: bool) -> None:
    while line := take_line(data, start, limits.head, "head_too_large", None):
        if len(head.fields) == limits.count:
            raise Fault("too_many_headers")
        start += len(line) + 2
        head.fields.append(read_field(head, line, limits, is_request))
    head.length = start + 2


def read_field(head: Head, line: bytes, limits: Limits, is_request: bool) -> Field:
    if line[:1] in (b" ", b"\t"):
        raise Fault("fold")
    match = re.fullmatch(rb"(?s)(%b):[ \t]*(.*?)[ \t]*" % TOKEN, line)
    if match is None:
        raise Fault("name")
    name, value = match[1], match[2]
    lower = name.lower()
    if b"_" in name:
        if is_request and limits.underscore == "reject":
            raise Fault("underscore")
        dashed = lower.replace(b"_", b"-")
        lookalike = dashed in KNOWN | FORWARDING or dashed.startswith(b"x-edge-")
        lookalike = lookalike or (dashed.startswith(b"x-forwarded-") and dashed != b"x-forwarded-")
        return Field(name, value, hop=is_request and (limits.underscore == "drop" or lookalike))
    seen = [f.name.lower() for f in head.fields]
    if lower == b"host" and is_request:
        if lower in seen:
            raise Fault("many_hosts")
        read_host(head, value)
    if lower == b"content-length":
        if lower in seen:
            raise Fault("many_content_lengths")
        if not re.fullmatch(rb"0|[1-9][0-9]*", value) or int(value) >= 2**63:
            raise Fault("content_length")
    if lower == b"transfer-encoding":
        codings = value.lower()
        if lower in seen or not re.fullmatch(rb"(?:%b[ \t]*,[ \t]*)*chunked" % TOKEN, codings):
            raise Fault("transfer_encoding")
        if b"chunked" in elements(codings)[:-1]:
            raise Fault("transfer_encoding")
    if lower == b"te" and b"trailers" in [e.lower() for e in elements(value)]:
        head.te_trailers = True
    return Field(name, value, hop=lower in HOP)


def read_host(head: Head, value: bytes) -> None:
    match = HOST.fullmatch(value)
    if match is None or len(match["host"]) > 255 or int(match["port"] or 0) > 65535:
        raise Fault("host")
    if value.startswith(b"["):
        try:
            if b"%" in value:
                raise ValueError("zone")
            ipaddress.IPv6Address(match["host"][1:-1].decode("latin-1"))
        except ValueError:
            raise Fault("host") from None
    elif "" in match["host"].decode().removesuffix(".").split("."):
        raise Fault("host")
    if head.scheme and head.authority.lower() != value.lower():
        raise Fault("authority")
    head.host, head.port, head.authority = match["host"], int(match["port"] or 0), value
    if head.host.endswith(b"."):
        head.host = head.host[:-1]
        head.notes |= {"host_dot"}


def check_lengths(names: list[bytes], head: Head) -> None:
    values = {f.name.lower(): f.value.lower() for f in head.fields}
    if b"content-length" in names and b"transfer-encoding" in names:
        raise Fault("both_lengths")
    if b"transfer-encoding" in names:
        if values[b"transfer-encoding"] != b"chunked":
            raise Fault("coding_unknown")
        head.body = "chunked"
    elif int(values.get(b"content-length", b"0")) > 0:
        head.body = "length"
        head.content_length = int(values[b"content-length"])


def elements(value: bytes) -> list[bytes]:
    return [e.strip(b" \t") for e in value.split(b",")]


def connection_options(head: Head, with_proxy: bool) -> list[bytes]:
    names = {b"connection", b"proxy-connection"} if with_proxy else {b"connection"}
    values = [f.value.lower() for f in head.fields if f.name.lower() in names]
    return [e for value in values for e in elements(value) if e]


def mark_nominated(head: Head) -> None:
    standard = {b"close", b"keep-alive", b"upgrade"}
    named = [o for o in connection_options(head, with_proxy=False) if o not in standard]
    if len(named) > 32:
        raise Fault("too_many_headers")
    for i, f in enumerate(head.fields):
        lower = f.name.lower()
        protected = lower in (b"host", b"content-length", b"transfer-encoding", b"x-request-id")
        protected = protected or lower.startswith((b"x-edge-", b"x-forwarded-"))
        protected = protected or lower in FORWARDING
        if lower in named and not protected:
            head.fields[i] = Field(f.name, f.value, f.hop, nominated=True)
