"""JSON text: JSON to plain values, fast, with detection of repeated keys.

In: the bytes of one JSON value. Out: a `ParsedDocument`. The fast decoder keeps the last of two
equal keys. The value is therefore written again and its colons are counted. With an equal count no
key was lost, else a slow scan finds them.
Must never: accept what JSON does not (RFC 8259).
"""

from __future__ import annotations

import re

import msgspec

from edgefast.api.decode.lines import json_lines
from edgefast.api.decode.yaml_text import ParsedDocument, SyntaxProblem
from edgefast.api.limits import MAX_DEPTH

_BYTE = re.compile(r" \(byte (\d+)\)$")


def read_json(text: bytes) -> ParsedDocument:
    """Return the value of a text; SyntaxProblem when it is not JSON."""
    try:
        value = msgspec.json.decode(text)
        colons = msgspec.json.encode(value).count(b":")
    except msgspec.DecodeError as error:
        message = str(error)
        found = _BYTE.search(message)
        line = text.count(b"\n", 0, int(found[1])) if found else text.count(b"\n")
        what = _BYTE.sub("", message).removeprefix("JSON is malformed: ")
        raise SyntaxProblem(f"JSON: {what}", line) from None
    except RecursionError:
        raise SyntaxProblem(f"JSON: nested deeper than {MAX_DEPTH} levels", 0) from None
    # A colon written as \u003a would be counted on one side only.
    if b"\\u003" not in text and colons == text.count(b":"):
        return ParsedDocument(value)
    try:
        return ParsedDocument(value, tuple(json_lines(text).duplicates))
    except RecursionError:
        raise SyntaxProblem(f"JSON: nested deeper than {MAX_DEPTH} levels", 0) from None
