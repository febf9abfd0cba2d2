"""Path normalisation and query decoding again, slow and obvious: lists of segments and re.sub.

In: bytes of a path or of a query part. Out: bytes, None when invalid. The rules are those of csrc/path.h. Must never share code with
csrc.
"""

from __future__ import annotations

import re

UNRESERVED = set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def holds_escaped_slash(path: bytes) -> bool:
    """%2F or %5C in any case."""
    return any(int(m[1], 16) in b"/\\" for m in ESCAPE.finditer(path))


def normalize(path: bytes, unescape: bool = False) -> bytes | None:
    """The normal form; `unescape` makes %2F and %5C slashes first."""
    if not path.startswith(b"/") or b"\\" in path:
        return None
    if len(ESCAPE.findall(path)) != path.count(b"%") or b"%00" in path:
        return None

    def decode(match: re.Match[bytes]) -> bytes:
        value = int(match[1], 16)
        if value in UNRESERVED:
            return bytes([value])
        if unescape and value in b"/\\":
            return b"/"
        return b"%%%02X" % value

    segments = ESCAPE.sub(decode, path)[1:].split(b"/")
    if any(re.match(rb"\.{1,2}(?:;|%3B)", segment) for segment in segments):
        return None
    kept: list[bytes] = []
    for i, segment in enumerate(segments):
        is_last = i == len(segments) - 1
        if segment == b"..":
            del kept[-1:]
        elif segment != b".":
            kept.append(segment)
        if is_last and segment in (b".", b".."):
            kept.append(b"")
    return re.sub(rb"//+", b"/", b"/" + b"/".join(kept))


def strip_parameters(path: bytes, start: int = 0) -> bytes:
    """A path in normal form without the parameters (";") of each segment, from `start` on."""
    kept = path[:start] + re.sub(rb";[^/]*", b"", path[start:])
    return path[:start] + re.sub(rb"//+", b"/", kept)[start:]


def encode_raw(path: bytes) -> bytes:
    """The path with characters that no URI path has as %XX."""
    return re.sub(rb"[^!$-;=@-\[\]_a-z~]", lambda m: b"%%%02X" % m[0][0], path)


def decode_query(text: bytes) -> bytes:
    """'+' is a space; what is no escape stays."""
    return ESCAPE.sub(lambda m: bytes([int(m[1], 16)]), text.replace(b"+", b" "))
