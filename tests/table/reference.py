"""A naive matcher: the text of the Gateway API, written down without a thought about speed.

In: entries in any order (match, rule, age), a request. Out: all entries that match, the most specific first
(HTTPRouteRule.matches: exact path, regex path, longest prefix, method, most headers, most query parameters, age).
Must never: share code with what it checks; Python's `re` stands in for RE2, on patterns that mean the same in both.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from edgefast import ir
from edgefast.table import Request

_KINDS = {"exact": 0, "regex": 1, "prefix": 2}


def precedence(match: ir.Match, age: int) -> tuple[int, ...]:
    """Sort key: what comes first wins."""
    return (
        _KINDS[match.kind],
        -len(match.path),
        0 if match.method else 1,
        -len(match.headers),
        -len(match.query),
        age,
    )


def matches(match: ir.Match, request: Request) -> bool:
    """All predicates of an HTTPRouteMatch hold."""
    return (
        path_matches(match, request.path)
        and match.method in ("", request.method)
        and all(header_matches(want, request) for want in match.headers)
        and all(value_matches(want, parameter_of(request, want.name)) for want in match.query)
    )


def path_matches(match: ir.Match, path: str) -> bool:
    if match.kind == "exact":
        return path == match.path
    if match.kind == "regex":
        return re.fullmatch(match.path, path) is not None
    wanted = [segment for segment in match.path.split("/") if segment]
    segments = path.split("/")[1:]
    return path.startswith("/") and segments[: len(wanted)] == wanted


def header_matches(want: ir.ValueMatch, request: Request) -> bool:
    """A header, or any of the cookies of a name (RFC 6265 4.2.1)."""
    if not want.name.startswith("cookie:"):
        return value_matches(want, header_of(request, want.name))
    pieces = (header_of(request, "cookie") or "").replace(",", ";").split(";")
    cookies = [piece.partition("=") for piece in pieces if "=" in piece]
    return any(
        value_matches(want, value.strip(" \t"))
        for name, _, value in cookies
        if name.strip(" \t") == want.name.removeprefix("cookie:")
    )


def value_matches(want: ir.ValueMatch, value: str | None) -> bool:
    if value is None:
        return False
    return re.fullmatch(want.value, value) is not None if want.regex else value == want.value


def header_of(request: Request, name: str) -> str | None:
    values = [value for sent, value in request.headers if sent.lower() == name]
    return ",".join(values) if values else None


def parameter_of(request: Request, name: str) -> str | None:
    for piece in request.query.split("&"):
        key, _, value = piece.partition("=")
        if piece and decode(key) == name:
            return decode(value)
    return None


def decode(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "surrogateescape")


def order_hosts(host: str, hostnames: list[str]) -> list[str]:
    """The hostnames that take a host: exact, then wildcards with the longest suffix, then "*"."""
    taking = [
        name
        for name in hostnames
        if name == host
        or name == "*"
        or (name.startswith("*.") and host.endswith(name[1:]) and len(host) > len(name) - 1)
    ]
    return sorted(taking, key=lambda name: (name == "*", name.startswith("*"), -len(name)))
