"""Access annotations: served objects with annotations of other projects that decide access (api/migration/access_policies.py).

In: a loaded object. Out: a ForeignPolicy of the object itself, with the lines of the annotations;
None for most objects.
Must never: read a value.
"""

from __future__ import annotations

from edgefast.api.edge.policy_target import (
    BACKEND_TARGETS,
    TARGET_KINDS,
    group_of_target,
)
from edgefast.api.loaded import Loaded
from edgefast.api.migration.access_policies import find_access_policies_among
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.migration.target import Target
from edgefast.diagnostics.problem import Source

__all__ = ["find_annotated_guard"]

_KINDS = frozenset({*TARGET_KINDS, *BACKEND_TARGETS})


def find_annotated_guard(item: Loaded) -> ForeignPolicy | None:
    """Return a policy for the annotations of an object that decide access, None if none does."""
    annotations = item.obj.metadata.annotations
    if not annotations:
        return None
    kind = type(item.obj).__name__
    names = find_access_policies_among(annotations) if kind in _KINDS else ()
    if not names:
        return None
    meta = item.obj.metadata
    group = group_of_target(kind)
    targets = []
    for name in names:
        path = ("metadata", "annotations", name)
        target = Target(path, group, kind, meta.namespace, meta.name)
        targets.append((target, Source(item.file, item.marks.line_of(path))))
    return ForeignPolicy(item.ref, tuple(targets), source=item.source, access_policies=names)
