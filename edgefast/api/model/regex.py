"""Regex: regular expressions: whether they are RE2, and what they match, as in the data plane.

In: a pattern. Out: what is wrong with it, or "" (`check_regex`); compiled, with the options of
core/route/tables.pyx. RE2 runs in linear time, has no look-around and no back-references
(https://github.com/google/re2/wiki/Syntax). Patterns match whole values.
Must never: use Python's `re`, which accepts more and can take exponential time.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import Any, Protocol

import re2  # type: ignore[import-untyped]  # the package ships no types

from edgefast.diagnostics.redact import hide, is_hidden

#: Bytes of a compiled pattern and its automata. RE2's default of 8 MiB takes up to 80 ms of CPU for one pattern, this 7 ms.
PROGRAM_BYTES = 1024 * 1024
#: Cached results of patterns: more than a reconciliation needs, at about 200 bytes each.
_CHECKED = 65_536

_OPTIONS = re2.Options()
_OPTIONS.max_mem = PROGRAM_BYTES
_OPTIONS.log_errors = False  # the error is returned; the library would also write to stderr
_BYTES = re2.Options()
_BYTES.log_errors = False
_BYTES.encoding = re2.Options.Encoding.LATIN1

#: A backslash of a substitution with what comes after it.
_ESCAPE = re.compile(rb"\\(.?)", re.DOTALL)


class Regex(Protocol):
    """A compiled pattern."""

    def fullmatch(self, text: str | bytes, /) -> object | None:
        """Return something when it matches the whole text."""


@lru_cache(maxsize=_CHECKED)
def check_regex(pattern: str) -> str:
    """Return RE2's complaint about a pattern, "" when it compiles."""
    try:
        re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        message = error.args[0]
        return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return ""


def explain_regex(pattern: str, name: str = "") -> str:
    """Return what is told of a pattern that is none, "" when it is one; `name` is of the header or query parameter.

    RE2 quotes the part that it could not read: of what is not shown, only what kind of mistake it is.
    """
    wrong = check_regex(pattern)
    if not wrong:
        return ""
    if is_hidden(name, pattern):
        return f"{hide(pattern)} is not an RE2 expression: {wrong.partition(':')[0]}"
    return f'"{pattern}" is not an RE2 expression: {wrong}'


@lru_cache(maxsize=4096)
def compile_regex(pattern: str | bytes) -> Regex:
    """Compile a pattern that `check_regex` takes, for text in UTF-8: paths, and values of matches."""
    compiled: Regex = re2.compile(pattern, _OPTIONS)
    return compiled


def count_groups(pattern: str) -> int:
    """Return how many groups a pattern that `check_regex` takes has."""
    return int(re2.compile(pattern, _OPTIONS).groups)


@lru_cache(maxsize=1024)
def compile_bytes_regex(pattern: str) -> Regex:
    """The same for values of any bytes: what rate limits look at need not be UTF-8."""
    compiled: Regex = re2.compile(pattern.encode(), _BYTES)
    return compiled


def search_bytes(pattern: str, text: bytes) -> tuple[bytes, ...] | None:
    """Return the first match of a pattern in a text, and its groups; one that is not set is empty. None: there is no match."""
    found = re2.compile(pattern.encode(), _BYTES).search(text)
    if found is None:
        return None
    return tuple(found.group(at) or b"" for at in range(found.re.groups + 1))


def replace_regex(pattern: str, value: bytes, text: bytes) -> bytes | None:
    """Replace every match in a text, as RE2's GlobalReplace does: an empty match where the last one ended is none.

    \\0 to \\9 in the value stand for groups, \\\\ for a backslash; None: it names a group that there is not, or the pattern is none.
    """
    try:
        compiled = re2.compile(pattern.encode(), _BYTES)
    except re2.error:
        return None
    if not is_substitution(value, compiled.groups):
        return None
    made, at, last = bytearray(), 0, -1
    while at <= len(text):
        found = compiled.search(text, at)
        if found is None:
            break
        start, end = found.span()
        made += text[at:start]
        if start == end == last:  # one byte further
            made += text[start : start + 1]
            at, last = start + 1, -1
            continue
        made += _ESCAPE.sub(partial(_expand, found), value)
        at = last = end
        if start == end == len(text):
            break
    return bytes(made + text[at:])


def is_substitution(value: bytes, groups: int) -> bool:
    """Tell whether every backslash of a substitution stands before one more, or before a group that there is."""
    return all(
        one[1] == b"\\" or (one[1].isdigit() and int(one[1]) <= groups)
        for one in _ESCAPE.finditer(value)
    )


def _expand(found: Any, escape: re.Match[bytes]) -> bytes:
    if escape[1] == b"\\":
        return b"\\"
    group: bytes | None = found.group(int(escape[1]))
    return group or b""
