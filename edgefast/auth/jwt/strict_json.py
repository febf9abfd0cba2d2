"""Strict JSON: RFC 8259 with the restrictions of I-JSON (RFC 7493), so that signers and verifiers read the same value.

In: bytes.
Out: dicts, lists, text, numbers, bools and None. The parser refuses duplicate names, invalid
Unicode, and numbers that are not finite or have thousands of digits. It refuses more or deeper
lists and objects than the caller allows, before any recursion. Parsing time is proportional to the
length of the text.
Must never: repeat a part of its input in a message.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

__all__ = ["JsonError", "parse_json"]

#: A string, one that has no end up to the end of all: nobody begins again behind its quote.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.S)
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # begins what may be half of a surrogate pair


class JsonError(ValueError):
    """It is not JSON as above; the text says why, and not what."""


def parse_json(text: bytes, depth: int, most: int) -> Any:
    """Parse a text; containers may be open `depth` deep, and `most` of them be there, brackets in strings counted. Raises JsonError."""
    count = text.count(b"[") + text.count(b"{")
    if count > most:
        raise JsonError("too many lists and objects")
    if count > depth and not _is_within(text, depth):
        raise JsonError("nested too deeply")
    try:
        found = _DECODER.decode(text.decode())
    except UnicodeDecodeError:
        raise JsonError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg}, line {error.lineno} column {error.colno}") from None
    except JsonError:
        raise
    except ValueError:  # int() of thousands of digits
        raise JsonError("a number is too long") from None
    if _HALF.search(text) is not None:
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError:
            raise JsonError("a string is not valid Unicode") from None
    return found


def _is_within(text: bytes, depth: int) -> bool:
    """Tell whether brackets outside of strings are not open deeper; of what is no JSON, how deep a parser would come at most."""
    here = 0
    for one in _TOKEN.finditer(text):
        first = text[one.start()]
        if first in b"[{":
            here += 1
            if here > depth:
                return False
        elif first in b"]}":
            here -= 1
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise JsonError("an object has the same name twice")
    return found


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise JsonError("a number is too large")
    return found


def _refuse(_: str) -> Any:
    raise JsonError("a number is not finite")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse)
