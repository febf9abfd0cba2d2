"""Rewrite: the request target as the backend sees it, and redirects by a target with a scheme."""

from __future__ import annotations

import re

from ingress.naive.matching import Served

#: Bytes that nginx writes as %XX in a path, and more of them in an argument.
_URI = frozenset(' "#%?<>\\^`{|}\x7f') | {chr(code) for code in (*range(32), *range(128, 256))}
_ARGUMENT = _URI | frozenset("&+;")


def rewritten(served: Served, path: str) -> bytes | None:
    """A rewrite is `rewrite "(?i)<path>" <target> break`: an unanchored search that replaces the whole URI; an unset group is
    empty. None: no rewrite."""
    target = served.location.rewrites(served.path)
    if not target or target.startswith(("http://", "https://")):
        return None
    found = re.search(served.path.encode("latin-1"), path.encode("latin-1"), re.IGNORECASE)
    return None if found is None else _expand(target, found).encode("latin-1")


def with_groups(served: Served, path: str, text: str) -> str:
    """Groups of the rewrite in another text, as nginx has them after `rewrite`."""
    found = re.search(served.path.encode("latin-1"), path.encode("latin-1"), re.IGNORECASE)
    return text if found is None else _expand(text, found)


def redirected(served: Served, path: str, request_target: str) -> str | None:
    """A target with a scheme is a 302; it appends the query. The Location, or None."""
    target = served.location.rewrites(served.path)
    if not target.startswith(("http://", "https://")):
        return None
    found = re.search(served.path.encode("latin-1"), path.encode("latin-1"), re.IGNORECASE)
    if found is None:
        return None
    raw, _, query = request_target.partition("?")
    quoted = "%" in raw or "+" in raw
    location = _unescape(_expand(target, found, escape=quoted))
    return f"{location}?{query}" if query else location


def forwarded_target(target: str, path: bytes | None) -> str:
    """Without a rewrite the original bytes are forwarded (`//`, `/../`, `%2f`, an empty `?` included). After a rewrite the path
    is escaped again (`%2F` arrives as `/`), the query is kept as it was."""
    if path is None:
        return target
    text = _escape(path.decode("latin-1"), _URI)
    _, _, query = target.partition("?")
    return f"{text}?{query}" if query else text


def _expand(target: str, found: re.Match[bytes], *, escape: bool = False) -> str:
    def group(reference: re.Match[str]) -> str:
        number = int(reference[1])
        value = (found[number] or b"") if number <= found.re.groups else b""
        text = value.decode("latin-1")
        return _escape(text, _ARGUMENT) if escape else text

    return re.sub(r"\$([0-9])", group, target)


def _escape(text: str, which: frozenset[str]) -> str:
    return "".join(f"%{ord(one):02X}" if one in which else one for one in text)


def _unescape(text: str) -> str:
    """As nginx does in a Location: up to the first `?`, and only characters between `%` and DEL."""
    head, mark, tail = text.partition("?")

    def decode(found: re.Match[str]) -> str:
        one = chr(int(found[1], 16))
        return one if "%" < one < "\x7f" else found[0]

    return re.sub(r"%([0-9A-Fa-f]{2})", decode, head) + mark + tail
