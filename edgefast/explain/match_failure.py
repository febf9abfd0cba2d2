"""Match failure: the one reason why a request does not satisfy a match.

In: an ir.Match, a `Call`. Out: None when the request satisfies it. Else the first failing
predicate, in the order path, method, headers, query, and the number of other failing ones. The
matcher's own functions read the values and the same RE2 compares them.
Must never: choose a winner (the matcher does, and a test compares both), or show a credential that
a rule compares with. A value that the request sent may be shown.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edgefast import ir
from edgefast.api.model.regex import compile_regex
from edgefast.diagnostics.redact import show
from edgefast.table.match import COOKIE, Call

Test = Literal["path", "method", "header", "query"]

_EMPTY = '""'
_SHOWN = 60  # characters of a value in a reason


class Failure(msgspec.Struct, frozen=True):
    """Why a match does not hold."""

    test: Test
    text: str  # "header x-v: one != two"
    more: int  # predicates that fail beside it; those of another path are not tried


def try_match(match: ir.Match, call: Call, method: str) -> Failure | None:
    """Return why a match does not hold for a request, None when it does."""
    path = _try_path(match, call.path)
    if path:
        return Failure("path", path, 0)
    failed: list[tuple[Test, str]] = []
    if match.method not in ("", method):
        failed.append(("method", f"method {method} is not {match.method}"))
    for one in match.headers:
        if one.name.startswith(COOKIE):
            text = _try_cookie(one, call.cookies(one.name.removeprefix(COOKIE).encode()))
        else:
            text = _try_value("header", one, call.header(one.name))
        if text:
            failed.append(("header", text))
    for one in match.query:
        if text := _try_value("query", one, call.parameter(one.name)):
            failed.append(("query", text))
    return Failure(*failed[0], len(failed) - 1) if failed else None


def _try_path(match: ir.Match, path: bytes) -> str:
    want = match.path.encode()
    shown = cut(path.decode("utf-8", "replace"))
    if match.kind == "exact":
        return "" if path == want else f"path {shown} is not {cut(match.path)}"
    if match.kind == "prefix":
        holds = path.startswith(want + b"/") or path == want
        return "" if holds else f"path {shown} is not under {cut(match.path) or '/'}"
    holds = compile_regex(match.path).fullmatch(path) is not None
    return "" if holds else f"path {shown} does not match {cut(match.path)}"


def _try_cookie(want: ir.ValueMatch, values: list[bytes]) -> str:
    """Any of the cookies of a name may hold; else the first one says why not. Their values are never shown."""
    name = want.name.removeprefix(COOKIE)
    if not values:
        return f"cookie {name} is missing"
    if want.regex:
        compiled = compile_regex(want.value)
        holds = any(compiled.fullmatch(one) is not None for one in values)
        return "" if holds else f"cookie {name} does not match {cut(show(want.name, want.value))}"
    if want.value.encode() in values:
        return ""
    return f"cookie {name} is not {cut(show(want.name, want.value)) or _EMPTY}"


def _try_value(what: str, want: ir.ValueMatch, value: bytes | None) -> str:
    if value is None:
        return f"{what} {want.name} is missing"
    shown = cut(value.decode("utf-8", "replace")) or _EMPTY
    wanted = cut(show(want.name, want.value))
    if want.regex:
        if compile_regex(want.value).fullmatch(value) is not None:
            return ""
        return f"{what} {want.name}: {shown} does not match {wanted}"
    holds = value == want.value.encode()
    return "" if holds else f"{what} {want.name}: {shown} != {wanted or _EMPTY}"


def describe_match(match: ir.Match) -> str:
    """Return a match in words: "GET prefix /shop, header x-v: two"."""
    words = [match.method] if match.method else []
    words.append(f"{match.kind} {match.path or '/'}")
    parts = [" ".join(words)]
    for what, predicates in (("header", match.headers), ("query", match.query)):
        parts += [
            f"{_named(what, one.name)}{' ~ ' if one.regex else ': '}{show(one.name, one.value) or _EMPTY}"
            for one in predicates
        ]
    return ", ".join(parts)


def _named(what: str, name: str) -> str:
    """What a predicate looks at: "header x-v", "cookie sid"."""
    return f"cookie {name.removeprefix(COOKIE)}" if name.startswith(COOKIE) else f"{what} {name}"


def cut(text: str) -> str:
    """Return text short enough for a reason."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
