"""Conversion: what comes of converting Ingresses: objects with comments and a report.

In: nothing. Out: structs.
Must never: hold text that depends on the output format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from edgefast.api.kinds import Object
from edgefast.diagnostics.problem import ObjectRef, Problem

__all__ = ["Conversion", "Converted", "Line", "Result"]

#: "same": requests get the same answers. "differs": they get other ones. "refused": the part is not served.
Result = Literal["same", "differs", "refused"]


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """One object of the output; `parts`: comments by field path, `spec.rules[0]`."""

    obj: Object
    comment: str = ""
    parts: Mapping[str, str] = {}
    file: str = ""  # name of its file, without a folder


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one annotation or field."""

    object: str  # "Ingress shop/web"
    setting: str  # name of the annotation without prefix, or a field path
    result: Result
    how: str = ""  # how it differs, or why it is refused
    fix: str = ""


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """The output of one conversion."""

    objects: tuple[Converted, ...]
    report: tuple[Line, ...]
    ingresses: int  # that were converted
    replaced: frozenset[ObjectRef]  # objects that the output replaces
    problems: tuple[Problem, ...] = ()
