"""Annotated guards: objects that are served and have annotations of other projects that decide access (resources/foreign/guards.py).

In: a loaded object. Out: a ForeignPolicy of the object itself, with the lines of the annotations; None for most objects.
Must never: read a value.
"""

from __future__ import annotations

from edgefast.problem import Source
from edgefast.resources.edge.policytarget import (
    BACKEND_TARGETS,
    LATER_KINDS,
    TARGET_KINDS,
    group_of_target,
)
from edgefast.resources.foreign.foreignpolicy import ForeignPolicy
from edgefast.resources.foreign.guards import find_guards_among
from edgefast.resources.foreign.target import Target
from edgefast.resources.loaded import Loaded

__all__ = ["find_annotated_guard"]

_KINDS = frozenset({*TARGET_KINDS, *LATER_KINDS, *BACKEND_TARGETS})


def find_annotated_guard(item: Loaded) -> ForeignPolicy | None:
    """Return a policy for the annotations of an object that decide access, None if none does."""
    annotations = item.obj.metadata.annotations
    if not annotations:
        return None
    kind = type(item.obj).__name__
    names = find_guards_among(annotations) if kind in _KINDS else ()
    if not names:
        return None
    meta = item.obj.metadata
    group = group_of_target(kind)
    targets = []
    for name in names:
        path = ("metadata", "annotations", name)
        target = Target(path, group, kind, meta.namespace, meta.name)
        targets.append((target, Source(item.file, item.marks.line_of(path))))
    return ForeignPolicy(item.ref, tuple(targets), source=item.source, guards=names)
