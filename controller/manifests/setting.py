"""`--set key.path=value`: one setting on the command line, in helm's syntax.

In: values and a setting: pairs separated by commas, keys by dots, `list[0]`, `{a,b}` for a list, a
backslash before a special character, null to remove a key. true, false and whole numbers have their
own types.
Out: new values.
Must never: change the given values.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_MAX_INDEX = 65536  # helm's


class SettingError(ValueError):
    """A setting that cannot be read; its text says why."""


def apply_setting(values: dict[str, Any], text: str, *, textual: bool = False) -> dict[str, Any]:
    """Return the values with every pair of a setting; `textual` takes no value for more than text.

    SettingError says what cannot be read.
    """
    result: dict[str, Any] = copy.deepcopy(values)
    for pair in _split(text, ","):
        key, found, value = _partition(pair)
        if not found:
            raise SettingError(f"{pair!r} has no value (expected key=value)")
        _put(result, _path(key), _value(value, _plain if textual else _scalar))
    return result


def _split(text: str, separator: str) -> list[str]:
    """Split outside of braces; what a backslash protects stays protected."""
    parts, part, depth, at = [], "", 0, 0
    while at < len(text):
        one = text[at]
        if one == "\\" and at + 1 < len(text):
            part += text[at : at + 2]
            at += 2
            continue
        depth += (one == "{") - (one == "}")
        if one == separator and depth <= 0:
            parts.append(part)
            part = ""
        else:
            part += one
        at += 1
    return [*parts, part]


def _partition(pair: str) -> tuple[str, bool, str]:
    found = re.match(r"((?:[^=\\]|\\.)*)=", pair, re.S)
    return (found[1], True, pair[found.end() :]) if found else (pair, False, "")


def _path(key: str) -> list[str | int]:
    path: list[str | int] = []
    for part in _split(key, "."):
        found = re.fullmatch(r"((?:[^\[\]\\]|\\.)*)((?:\[[0-9]{1,9}\])*)", part, re.S)
        if not found or not found[1]:
            raise SettingError(f"{key!r} is not a key")
        path.append(_plain(found[1]))
        for index in re.findall(r"\[([0-9]+)\]", found[2]):
            if int(index) > _MAX_INDEX:
                raise SettingError(f"the index {index} is more than {_MAX_INDEX}")
            path.append(int(index))
    return path


def _value(text: str, read: Callable[[str], Any]) -> Any:
    if text.startswith("{") and text.endswith("}"):
        return [read(one) for one in _split(text[1:-1], ",")]
    return read(text)


def _scalar(text: str) -> Any:
    words = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    return int(text) if _NUMBER.fullmatch(text) else _plain(text)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.S)


def _put(values: dict[str, Any], path: list[str | int], value: Any) -> None:
    at: Any = values
    for index, key in enumerate(path):
        last = index == len(path) - 1
        empty: Any = None if last else ([] if isinstance(path[index + 1], int) else {})
        if isinstance(key, int):
            if not isinstance(at, list):
                raise SettingError(f"{path[index - 1]!r} is not a list")
            at.extend([None] * (key + 1 - len(at)))
            if last:
                at[key] = value
            elif at[key] is None:
                at[key] = empty
        else:
            if not isinstance(at, dict):
                raise SettingError(f"{path[index - 1]!r} has no keys")
            if last and value is None:
                at.pop(key, None)
            elif last:
                at[key] = value
            elif not isinstance(at.get(key), dict | list):
                at[key] = empty
        if not last:
            at = at[key]
