"""Loaded: an object together with its place in a file.

In: the objects of the decoder. Out: `source_at(path)`, the line of any field, found only on
request. Objects themselves know no file: the same object read from an API server equals it.
Must never: be read again from disk; the text is kept.
"""

from __future__ import annotations

import re
from typing import Protocol

import msgspec

from edgefast.api.kinds import Object, ref_of
from edgefast.api.limits import MAX_SHOWN_VALUE
from edgefast.api.model.fields import Element
from edgefast.diagnostics.problem import ObjectRef, Source

#: A field path in parts: names of fields and map keys are text, positions in lists are numbers.
Path = tuple[str | int, ...]

_PART = re.compile(r"\[([^\]]*)\]|([^.\[]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")


class Marks(Protocol):
    """Knows the lines of one document."""

    def line_of(self, path: Path) -> int:
        """Return the line of a field, or of the nearest part of its path that exists."""
        ...


class Loaded(msgspec.Struct, frozen=True, eq=False):
    """An object, its file, and the marks of its document."""

    obj: Object
    file: str
    marks: Marks

    @property
    def source(self) -> Source:
        """File and line of the object's beginning."""
        return Source(self.file, self.marks.line_of(()))

    @property
    def ref(self) -> ObjectRef:
        """The reference that names the object."""
        return ref_of(self.obj)

    def source_at(self, path: str) -> Source:
        """Return file and line of a field path such as `spec.rules[0].matches[1].path`."""
        return Source(self.file, self.marks.line_of(split_path(path)))


class Refused(msgspec.Struct, frozen=True, eq=False):
    """An object of a file with a mistake in it: only sound references of it are known, and its place if it has one."""

    ref: ObjectRef
    file: str
    marks: Marks
    references: tuple[tuple[Path, Element], ...] = ()
    closed: Loaded | None = None

    def source_at(self, path: Path) -> Source:
        """Return file and line of a field."""
        return Source(self.file, self.marks.line_of(path))


def split_path(path: str) -> Path:
    """Split a field path into its parts; `[3]` is a position, `[app]` a map key."""
    parts: list[str | int] = []
    for bracket, name in _PART.findall(path):
        if name:
            parts.append(name)
        elif bracket:
            parts.append(int(bracket) if bracket.isdecimal() else bracket)
    return tuple(parts)


def render_path(path: Path) -> str:
    """Write a path as Kubernetes does: fields by dots, positions and odd keys in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part[:MAX_SHOWN_VALUE]}]"
    return text
