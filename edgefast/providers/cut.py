"""Cut: whether the text of a file ends before its last document does.

In: the bytes of a file and what they were decoded to. Out: why the last document is incomplete. A text that
cannot be parsed is not handled here: it is invalid anyway. Must never: report a file as cut off if its last document has no mistake
and its last line has a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from edgefast.problem import Problem
from edgefast.resources.decode.decode import Decoded
from edgefast.resources.decode.duplicate import policy_of_duplicate
from edgefast.resources.decode.meantpolicy import CLOSING_KINDS
from edgefast.resources.decode.text import DocumentMarks, split_documents
from edgefast.resources.foreign.foreignpolicy import ForeignPolicy
from edgefast.resources.loaded import Marks

__all__ = ["Cut", "breaks_file", "close_policies", "find_cut", "lacks_end", "lose_last"]

#: Kinds that contain texts: their last line may be a line of such a text.
_TEXTS = ("ConfigMap", "Secret")

#: A document without one of these ends too early.
_OUTLINE = ("apiVersion", "kind", "metadata", "metadata.name", "spec")

_Position = tuple[int, int, tuple[str, ...]]


class Cut(NamedTuple):
    """Why the last document of a file is incomplete."""

    why: str
    told: bool  # its object has a mistake, which is a problem of its own


def find_cut(data: bytes, decoded: Decoded) -> Cut | None:
    """Return why the last document of a file is incomplete, None when it is complete."""
    dangling = _dangles(data)
    if dangling and decoded.objects and decoded.objects[-1].ref.kind in _TEXTS:
        dangling = ""
    if not (dangling or decoded.refused):  # nearly always
        return None
    *_, last = split_documents(data)
    if last.text.lstrip()[:1] == b"{":  # JSON that is cut off cannot be parsed
        return None
    wrong = max((_place(one.marks) for one in decoded.refused), default=(-1, 0, ()))
    sound = _place(decoded.objects[-1].marks) if decoded.objects else (-1, 0, ())
    if dangling and max(wrong, sound)[0] >= last.line:
        return Cut(f'the last line "{dangling}" has no value', wrong > sound)
    if wrong <= sound or wrong[0] < last.line:
        return None
    if not data.endswith(b"\n"):
        return Cut("the last document has an error, and the last line has no newline", True)
    ref = max(decoded.refused, key=lambda one: _place(one.marks)).ref
    lacks = [one.path for one in decoded.problems if (one.object, one.reason) == (ref, "Required")]
    if not any(path in _OUTLINE for path in lacks):
        return None
    return Cut("a field of the last document is missing", True)


def breaks_file(problem: Problem) -> bool:
    """Tell apart a text that ends too early and an object with a mistake."""
    return problem.object is None and problem.severity == "error"


def lacks_end(data: bytes, problems: Iterable[Problem]) -> bool:
    """Tell whether the last document of a file cannot be read."""
    last = max((one.line for one in split_documents(data)), default=0)
    return any(
        one.source is not None and one.source.line > last for one in problems if breaks_file(one)
    )


def close_policies(decoded: Decoded) -> tuple[ForeignPolicy, ...]:
    """Return objects that close the targets of the policies of a file that is not used."""
    found = ((policy_of_duplicate(one, 1), one.ref) for one in decoded.objects)
    return tuple(msgspec.structs.replace(one, ref=ref) for one, ref in found if one is not None)


def lose_last(decoded: Decoded) -> tuple[ForeignPolicy, ...]:
    """Return the last object of a file that is cut off, if it is a policy: its targets are unknown, so they are closed."""
    if not decoded.objects or (last := decoded.objects[-1]).ref.kind not in CLOSING_KINDS:
        return ()
    return (ForeignPolicy(last.ref, (), (), last.source, lost=True),)


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
