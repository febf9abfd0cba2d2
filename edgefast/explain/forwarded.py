"""Forwarded: the request head as a backend would see it, after filters.

In: the received head, the rule and its share, the client.
Out: the lines of the head, the request id as a placeholder where the proxy draws one. The twin of
core/head/requesthead.pyx (`write_request_head`) and core/head/headerops.pyx, which write bytes. A
test sends requests through an engine and compares every byte. For a backend of HTTP/2 `to_http2` is
the twin of csrc/h2_lines.c and core/h2/requester.pyx.
Must never: leave out a line that is sent, or show one that is not; `hide_head` shows only the
length of some values.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.api.model.regex import replace_regex
from edgefast.diagnostics.redact import show
from edgefast.explain.client import Client, join_values
from edgefast.explain.head import Head
from edgefast.explain.sign_in import original_target

RANDOM_ID = "<random UUID>"
#: Placeholders of what a client's certificate says: in x-forwarded-client-cert, and in headers of their own.
_ELEMENTS = {
    "cert": 'Cert="<certificate>"',
    "subject": 'Subject="<subject>"',
    "uri": "URI=<URI name>",
    "dns": "DNS=<DNS name>",
}
_OF_CERTIFICATE = {
    "ssl-client-subject-dn": "<subject>",
    "ssl-client-issuer-dn": "<issuer>",
    "ssl-client-cert": "<certificate>",
}

_OWN = (
    lib.EF_H_HOST,
    lib.EF_H_EXPECT,
    lib.EF_H_X_EDGE,
    lib.EF_H_X_FORWARDED_FOR,
    lib.EF_H_X_FORWARDED_PROTO,
    lib.EF_H_X_REQUEST_ID,
)
#: Headers of a trusted peer that stay in place of those that edgefast would write.
_KEPT_OF_TRUSTED = frozenset(("x-forwarded-host", "x-forwarded-port"))
#: Framing and connection headers belong to the proxy, whatever a filter asks for.
_FRAMING = frozenset(
    ("connection", "content-length", "transfer-encoding", "keep-alive", "proxy-connection")
    + ("te", "trailer", "upgrade")
)
#: Bytes that no path has: controls, space, and what ends it.
_NO_PATH = frozenset((*range(33), 127, *b"?#"))
_MOST_PATH = 8192  # bytes of a path that an expression has rewritten
#: What a request in HTTP/2 does not have; a tunnel has no key either, which is the HTTP/1.1 client's.
_HTTP1 = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    )
)
_TUNNEL_HTTP1 = _HTTP1 | {"content-length", "sec-websocket-key"}
_MOST_ID = 64  # bytes of a request id that is taken over


class Ops(msgspec.Struct, frozen=True):
    """Header operations of a rule and a backendRef in one."""

    drop: frozenset[str]
    lines: tuple[tuple[str, str], ...]
    host: str | None


def write_head(
    head: Head,
    rule: ir.Rule,
    share: ir.BackendRef | None,
    prefix_len: int,
    client: Client,
    http: ir.HttpSettings,
    *,
    timeout: int | None = None,
) -> tuple[str, ...]:
    """Return the lines of the request head; `share` None: the rule's own filters alone.

    `timeout`: of the request, in milliseconds, where policies have one; None: they have not.
    """
    ops = merge_ops(rule.request_headers, share.request_headers if share else None)
    rewrite = merge_rewrites(rule.rewrite, share.rewrite if share else None)
    path = head.path
    if rewrite is not None and rewrite.path is not None and path.startswith(b"/"):
        path = replace_path(path, prefix_len, rewrite.path)
    target = path if head.query is None else path + b"?" + head.query
    host = (rewrite.hostname if rewrite else "") or ops.host
    lines = [
        f"{head.method.decode()} {_text(target)} HTTP/1.1",
        f"host: {_text(head.authority) if host is None else host}",
    ]
    lines += _kept(head, ops, http)
    expected = rule.timeouts.request if timeout is None and rule.timeouts is not None else timeout
    lines += _added(head, expected, ops, client, http)
    lines += [f"{name}: {value}" for name, value in ops.lines]
    if head.chunked or (head.web_text and head.content_length):
        lines.append("transfer-encoding: chunked")
    upgrade = [one.value for one in head.lines if one.id == lib.EF_H_UPGRADE]
    if head.upgrade and upgrade:
        lines += ["connection: upgrade", f"upgrade: {_text(upgrade[-1])}"]
    return tuple(lines)


def to_http2(lines: tuple[str, ...], head: Head) -> tuple[str, ...]:
    """Return the lines of a head as fields of HTTP/2: what is of a connection in HTTP/1.1 is not sent, a WebSocket asks with CONNECT."""
    target = lines[0].partition(" ")[2].removesuffix("HTTP/1.1")
    pairs = [(name.lower(), value) for name, _, value in (one.partition(":") for one in lines[1:])]
    tunnel = ("upgrade", " websocket") in [(name, value.lower()) for name, value in pairs]
    gone = _TUNNEL_HTTP1 if tunnel else _HTTP1
    fields = [f"{name}:{value}" for name, value in pairs if name not in gone]
    if tunnel:
        fields.insert(1, ":protocol: websocket")
    if head.te_trailers or head.web:
        fields.append("te: trailers")
    method = "CONNECT" if tunnel else lines[0].partition(" ")[0]
    return (f"{method} {target}HTTP/2", *fields)


def hide_head(
    lines: tuple[str, ...], rule: ir.Rule, share: ir.BackendRef | None
) -> tuple[str, ...]:
    """Return the lines of a head as they may be shown: values that filters set, whoever asks has sent the others."""
    ops = merge_ops(rule.request_headers, share.request_headers if share else None)
    written = dict.fromkeys(f"{name}: {value}" for name, value in ops.lines)
    return tuple(_hide_line(one) if one in written else one for one in lines)


def _hide_line(line: str) -> str:
    name, _, value = line.partition(": ")
    return f"{name}: {show(name, value)}"


def _kept(head: Head, ops: Ops, http: ir.HttpSettings) -> list[str]:
    gone, drop = _dropped_flags(http), ops.drop | ({*http.forwarded.names} - _KEPT_OF_TRUSTED)
    if http.underscores == "Allow":  # backends may take "_" for "-"
        drop |= {
            name
            for name in (_text(one.name).lower() for one in head.lines)
            if "_" in name and name.replace("_", "-") in http.forwarded.names
        }
    return [
        _text(one.raw.removesuffix(b"\r\n"))
        for one in head.lines
        if not one.flags & gone and one.id not in _OWN and _text(one.name).lower() not in drop
        if not (head.web and one.name.lower() == b"content-type")
        if not (head.web_text and one.id == lib.EF_H_CONTENT_LENGTH)
    ]


def _dropped_flags(http: ir.HttpSettings) -> int:
    gone: int = lib.EF_SPAN_HOP | lib.EF_SPAN_NOMINATED
    return gone | lib.EF_SPAN_UNDERSCORE if http.underscores == "Drop" else gone


def _about_client(head: Head, client: Client, http: ir.HttpSettings) -> Iterator[tuple[str, str]]:
    """Give the lines of EdgeProxy spec.headers (core/head/forwardedheaders.pyx)."""
    gone, scheme = _dropped_flags(http), "https" if client.https else "http"
    values = {
        "x-real-ip": client.address,
        "x-forwarded-host": _text(head.authority),
        "x-forwarded-port": str(client.port),
        "x-forwarded-scheme": scheme,
        "x-scheme": scheme,
        "x-original-forwarded-for": join_values(head, "x-forwarded-for") or "",
        "x-original-forwarded-host": client.forwarded_host,
        "x-original-uri": _text(original_target(head)),
    }
    for name, value in values.items():
        if name not in http.forwarded.names or not value:
            continue
        if name not in _KEPT_OF_TRUSTED or join_values(head, name, gone) is None:
            yield name, value
    yield from _about_certificate(client, http.forwarded)


def _about_certificate(client: Client, about: ir.ForwardedHeaders) -> Iterator[tuple[str, str]]:
    """Give the lines about the client's certificate (core/head/certificateheaders.pyx); its values are not known."""
    verified = client.certificate == "verified"
    if verified and about.client_cert in ("append", "set"):
        element = ";".join(
            (
                "Hash=<SHA-256>",
                *(_ELEMENTS[one] for one in _ELEMENTS if one in about.client_cert_details),
            )
        )
        before = client.forwarded_cert if about.client_cert == "append" else None
        yield "x-forwarded-client-cert", f"{before},{element}" if before else element
    if client.certificate and "ssl-client-verify" in about.names:
        yield "ssl-client-verify", "SUCCESS" if verified else "NONE"
    for name, value in _OF_CERTIFICATE.items():
        if verified and name in about.names:
            yield name, value


def _added(
    head: Head, expected: int | None, ops: Ops, client: Client, http: ir.HttpSettings
) -> list[str]:
    forwarded = f"{client.received},{client.peer}" if client.received else client.peer
    if http.forwarded.overwrite_for:
        forwarded = client.address
    added = [
        ("x-forwarded-for", forwarded),
        ("x-forwarded-proto", "https" if client.https else "http"),
    ]
    if client.internal:
        added.append(("x-edge-internal", "true"))
    else:
        added.append(("x-edge-external-address", client.address))
    added += _about_client(head, client, http)
    ids = [one.value for one in head.lines if one.id == lib.EF_H_X_REQUEST_ID]
    keeps = client.internal or http.forwarded.request_id == "preserve"
    trusted = (
        keeps and http.forwarded.request_id != "generate" and ids and 0 < len(ids[-1]) <= _MOST_ID
    )
    added.append(("x-request-id", _text(ids[-1]) if trusted else RANDOM_ID))
    expected = http.route_timeout if expected is None else expected
    if expected:
        added.append(("x-edge-expected-rq-timeout-ms", str(expected)))
    if head.web:
        added.append(("content-type", head.web))
    if http.via:
        added.append(("via", f"{'1.0' if head.http10 else '1.1'} {http.via}"))
    return [f"{name}: {value}" for name, value in added if name not in ops.drop]


def replace_path(path: bytes, prefix_len: int, wanted: ir.PathRewrite) -> bytes:
    """Return a path after HTTPPathModifier: ReplaceFullPath, or ReplacePrefixMatch on whole segments."""
    value = wanted.value.encode()
    if wanted.kind == "regex":
        return rewrite_path(path, wanted) or path
    if wanted.kind == "full":
        return value if value.startswith(b"/") else b"/" + value
    rest = path[prefix_len:]
    if rest and not rest.startswith(b"/"):
        rest = b"/" + rest
    return (value.rstrip(b"/") + rest) or b"/"


def rewrite_path(path: bytes, wanted: ir.PathRewrite) -> bytes | None:
    """Return a path after a rewrite by an expression, None where it would be none, or be read as another (core/head/pathpattern.pyx)."""
    made = replace_regex(wanted.pattern, wanted.value.encode(), path)
    if made is None or not made.startswith(b"/") or len(made) > _MOST_PATH:
        return None
    if _NO_PATH & {*made}:
        return None
    normal, escaped = _look_at(made)
    return made if normal and (not escaped or _look_at(path)[1]) else None


def _look_at(path: bytes) -> tuple[bool, bool]:
    """Tell whether a path is in normal form, and whether it has escaped slashes."""
    out, size, escaped = ffi.new("uint8_t[]", len(path)), ffi.new("size_t *"), ffi.new("int *")
    result = lib.ef_path_normalize(path, len(path), out, len(path), size, escaped)
    return result == lib.EF_PATH_SAME, bool(escaped[0])


def merge_ops(*filters: ir.HeaderOps | None) -> Ops:
    """Return the operations of a rule, then of a backendRef, as one."""
    drop: set[str] = set()
    lines: list[tuple[str, str, str]] = []  # folded name, name, value
    for ops in filters:
        if ops is None:
            continue
        gone = {name.lower() for name in ops.remove} | {name.lower() for name, _ in ops.set}
        lines = [line for line in lines if line[0] not in gone]
        drop |= gone
        lines += [(name.lower(), name, value) for name, value in (*ops.set, *ops.add)]
    hosts = [value for folded, _, value in lines if folded == "host"]
    reserved = _FRAMING | {"host"}
    return Ops(
        drop=frozenset(drop - reserved),
        lines=tuple((name, value) for folded, name, value in lines if folded not in reserved),
        host=hosts[-1] if hosts else None,
    )


def merge_rewrites(outer: ir.Rewrite | None, inner: ir.Rewrite | None) -> ir.Rewrite | None:
    """Return the rule's URLRewrite and the backendRef's in addition: what both say, the backendRef decides."""
    if outer is None or inner is None:
        return inner or outer
    return ir.Rewrite(hostname=inner.hostname or outer.hostname, path=inner.path or outer.path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
