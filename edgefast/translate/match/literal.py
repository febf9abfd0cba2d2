"""Literal: the text that all values of a regular expression begin with.

In: a pattern, also one that RE2 refuses (look-around, unbalanced brackets). Out: its literal
beginning, or "" when it is unknown. The literal closes what a refused match was for (match.py), so
a wrong one would close what works.
Must never: guess; it reads only what all dialects have in common and stops at the first doubt.
"""

from __future__ import annotations

_META = frozenset(".[]()*+?{}|^$")
_MAYBE_ABSENT = frozenset("*?{")  # after these the character before may be missing


def literal_prefix(pattern: str) -> str:
    """Return text that every value of a pattern begins with, "" when none can be told."""
    if _has_alternatives(pattern):
        return ""
    literal: list[str] = []
    rest = iter(pattern.removeprefix("^"))
    for char in rest:
        if char == "\\":
            escaped = next(rest, "")
            if not escaped or escaped.isalnum():  # a class such as \d, or a back-reference
                break
            literal.append(escaped)
            continue
        if char in _META:
            if char in _MAYBE_ABSENT:
                del literal[-1:]
            break
        literal.append(char)
    return "".join(literal)


def _has_alternatives(pattern: str) -> bool:
    """Tell whether there is, or may be, a "|" outside of all brackets."""
    depth, in_class, doubtful = 0, False, False
    rest = iter(pattern)
    for char in rest:
        if char == "\\":
            next(rest, "")
        elif char == "|":
            if depth == 0 and not in_class:
                return True
            doubtful = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
    return doubtful and (depth != 0 or in_class)
