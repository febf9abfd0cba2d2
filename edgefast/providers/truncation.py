"""Truncation: detects a file that ends before its last document is complete, or that has an unparsable part.

In: the bytes of a file and the decoded documents.
Out: why the last document is incomplete; why a file that was never completely read may contain an
unknown policy.
Must never: report a file as truncated if its last document has no error and its last line has a
value.
"""

from __future__ import annotations

from typing import NamedTuple

from edgefast.api.decode.decode import Decoded
from edgefast.api.decode.text import DocumentMarks, split_documents
from edgefast.api.loaded import Marks
from edgefast.diagnostics.problem import Problem
from edgefast.providers.publish_gate import has_object_field, is_other_content

__all__ = ["Truncation", "breaks_file", "find_truncation", "find_unparsed"]

#: Kinds that contain texts: their last line may be a line of such a text.
_TEXTS = ("ConfigMap", "Secret")

#: A document without one of these ends too early.
_OUTLINE = ("apiVersion", "kind", "metadata", "metadata.name", "spec")

_Position = tuple[int, int, tuple[str, ...]]


class Truncation(NamedTuple):
    """Why the last document of a file is incomplete."""

    why: str
    told: bool  # its object has a mistake, which is a problem of its own


def find_truncation(data: bytes, decoded: Decoded) -> Truncation | None:
    """Return why the last document of a file is incomplete, None when it is complete."""
    dangling = _dangles(data)
    if dangling and decoded.objects and decoded.objects[-1].ref.kind in _TEXTS:
        dangling = ""
    if not (dangling or decoded.refused):  # nearly always
        return None
    *_, last = split_documents(data)
    text = last.text.lstrip().removeprefix(b"---").lstrip()
    if text[:1] == b"{":  # JSON that is cut off cannot be parsed
        return None
    wrong = max((_place(one.marks) for one in decoded.refused), default=(-1, 0, ()))
    sound = _place(decoded.objects[-1].marks) if decoded.objects else (-1, 0, ())
    if dangling and max(wrong, sound)[0] >= last.line:
        return Truncation(f'the last line "{dangling}" has no value', wrong > sound)
    if wrong <= sound or wrong[0] < last.line:
        return None
    if not data.endswith(b"\n"):
        return Truncation("the last document has an error, and the last line has no newline", True)
    ref = max(decoded.refused, key=lambda one: _place(one.marks)).ref
    lacks = [one.path for one in decoded.problems if (one.object, one.reason) == (ref, "Required")]
    if not any(path in _OUTLINE for path in lacks):
        return None
    return Truncation("a field of the last document is missing", True)


def breaks_file(problem: Problem) -> bool:
    """Tell apart a text that ends too early and an object with a mistake."""
    return problem.object is None and problem.severity == "error"


def find_unparsed(data: bytes, decoded: Decoded, cut: Problem | None) -> Problem | None:
    """Return why a part of a text is not known, None if all of it is; `cut`: that its last document is cut off.

    A text without a field of an object (a log, values of a chart) contains no policy.
    """
    known = has_object_field(data)
    if decoded.unparsed is not None:
        return decoded.unparsed if known or not is_other_content(data) else None
    if cut is not None:
        return cut
    last = max((one.line for one in split_documents(data)), default=0)
    ends = (one for one in decoded.problems if breaks_file(one) and one.source is not None)
    return next((one for one in ends if one.source and one.source.line > last and known), None)


def _dangles(data: bytes) -> str:
    """Return the last line when it begins a value and nothing follows."""
    line = data[-4096:].rstrip().rpartition(b"\n")[2].strip()
    if line.startswith(b"#") or not (line.endswith(b":") or line == b"-"):
        return ""
    return line.decode(errors="replace")[:64]


def _place(marks: Marks) -> _Position:
    """Return the sort key of an object: its place in the file."""
    if not isinstance(marks, DocumentMarks):
        return (0, 0, ())
    parts = tuple(f"{one:012}" if isinstance(one, int) else one for one in marks.prefix)
    return (marks.base, marks.document, parts)
