"""Depth: handles JSON of the API server that is nested deeper than a decoder accepts.

In: bytes of an answer or an event.
Out: its value. An API server accepts 10,000 levels (in a field with an open schema, such as an
EdgeProxy's affinity), decoders some hundred. One such object must not make all others of its page
unreadable. A value that is nested too deep becomes one word, MARK, for which the object is refused
(store.py).
Must never: cost time for objects without such nesting.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar, overload

import msgspec

__all__ = ["DEPTH", "MARK", "cut_deep", "decode_json"]

#: Levels that are read; no object that means anything has so many, and decoders take some hundred more.
DEPTH = 200
#: What stands for the rest.
MARK = b'"gateway.edge.io/nested-too-deep"'

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_OPENS = frozenset(b"[{")
_CLOSES = frozenset(b"]}")

T = TypeVar("T")


@overload
def decode_json(data: bytes | msgspec.Raw) -> Any: ...
@overload
def decode_json(data: bytes | msgspec.Raw, type: type[T]) -> T: ...
def decode_json(data: bytes | msgspec.Raw, type: Any = Any) -> Any:
    """Decode JSON; raises msgspec.MsgspecError when it is none, or of another shape."""
    try:
        return msgspec.json.decode(data, type=type)
    except RecursionError:
        return msgspec.json.decode(cut_deep(bytes(data)), type=type)


def cut_deep(data: bytes) -> bytes:
    """Return JSON with MARK in the place of each value below DEPTH levels; what is malformed stays so."""
    parts: list[bytes] = []
    kept = depth = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in _OPENS:
            depth += 1
            if depth == DEPTH + 1:
                parts += (data[kept : token.start()], MARK)
        elif first in _CLOSES:
            if depth == DEPTH + 1:
                kept = token.end()
            depth -= 1
    if depth <= DEPTH:
        parts.append(data[kept:])
    return b"".join(parts)
