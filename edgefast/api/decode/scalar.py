"""Scalar: plain YAML scalars: which are numbers, booleans or null, and which are text.

In: the text of an unquoted scalar. Out: its value. The rules are those of the YAML 1.1 readers of
Kubernetes tools. yes/no/on/off are booleans, 0x1f and 0o17 are numbers; but dates, sexagesimal
numbers and y/n stay text: no field needs them.
Must never: turn a mapping's key into anything but text.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {"": None, "~": None}
for _text, _value in (
    ("null", None),
    ("true", True),
    ("yes", True),
    ("on", True),
    ("false", False),
    ("no", False),
    ("off", False),
):
    for _word in (_text, _text.capitalize(), _text.upper()):
        _WORDS[_word] = _value
_WORDS |= {".nan": float("nan"), ".inf": float("inf"), "+.inf": float("inf")}
_WORDS |= {"-.inf": float("-inf")}

_FIRST = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_BASED = re.compile(r"([-+]?)0(?:x([0-9a-fA-F_]+)|b([01_]+)|o?([0-7_]+))")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")

#: Digits of a number before it is taken for text; no field holds more (and `int()` is quadratic).
_MAX_DIGITS = 64


def resolve_plain(text: str) -> Scalar:
    """Return the value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST or len(text) > _MAX_DIGITS:
        return text
    return _number(text)


def resolve_tagged(text: str, tag: str) -> Scalar:
    """Return the value of a scalar with an explicit tag; ValueError when it does not fit."""
    value: Scalar = text
    match tag.removeprefix("tag:yaml.org,2002:"):
        case "str" | "!":
            return text
        case "null":
            return None
        case "bool":
            value = _WORDS.get(text, text)
            if isinstance(value, bool):
                return value
        case "int":
            value = _number(text)
            if isinstance(value, int):
                return value
        case "float":
            value = _number(text)
            if isinstance(value, int | float):
                return float(value)
    raise ValueError(f"tag {tag} is not supported")


def _number(text: str) -> Scalar:
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    based = _BASED.fullmatch(text)
    if based:
        for digits, base in ((based[2], 16), (based[3], 2), (based[4], 8)):
            bare = digits.replace("_", "") if digits else ""
            if bare:
                return int(based[1] + bare, base)
        return text
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    return text
