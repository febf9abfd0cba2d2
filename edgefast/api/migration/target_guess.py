"""Target guess: which kinds of object a reference of a policy may name.

In: group and kind as they were written.
Out: the exact kind, or every kind of target where group or kind is misspelt, because only the name
is exact then. No kind for an object of another project, or of a kind that policies do not support;
None where the kind cannot be read.
Must never: take a well-formed reference to another project's object for one of edgefast's.
"""

from __future__ import annotations

import re

import msgspec

from edgefast.api.edge.policy_target import (
    BACKEND_TARGETS,
    LATER_KINDS,
    TARGET_KINDS,
    group_of_target,
)
from edgefast.api.kinds import EXPERIMENTAL_GROUP, KINDS
from edgefast.api.limits import MAX_SHOWN_NAME
from edgefast.api.migration.foreign_kinds import CORE_KINDS, OTHER_GROUPS, UNREAD_KINDS, is_slip
from edgefast.api.migration.target import Target
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import did_you_mean

__all__ = ["hint_at_kind", "read_kinds", "spread_target"]

_TARGETS = (*TARGET_KINDS, *LATER_KINDS, *BACKEND_TARGETS)
_OTHERS = frozenset({one.kind for one in KINDS.values()}.union(UNREAD_KINDS, CORE_KINDS)) - {
    *_TARGETS
}
_GROUPS = frozenset({GATEWAY_GROUP, *BACKEND_TARGETS.values()})
_WRITTEN = tuple(sorted(_GROUPS - {""}))
_EXPERIMENTAL = tuple(one for one in _TARGETS if group_of_target(one) == EXPERIMENTAL_GROUP)
_BEGIN = "gateway.networking."
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def read_kinds(group: object, kind: object) -> tuple[str, ...] | None:
    """Return the kinds that a reference may name; `group` is None where none is written."""
    if not isinstance(kind, str) or len(kind) > MAX_SHOWN_NAME:
        return None
    if kind in _TARGETS and group_of_target(kind) == group:
        return (kind,)
    if _is_other(group) or kind in _OTHERS:
        return ()
    # In the experimental group the same names begin with X.
    named = tuple(one for one in (kind, f"X{kind}") if one in _TARGETS)
    return named or _TARGETS


def spread_target(target: Target) -> tuple[Target, ...]:
    """Return the targets that another project's policy may name with one reference.

    Consul's reference writes gateway.networking.kuberenetes.io.
    """
    group = GATEWAY_GROUP if target.group.startswith(_BEGIN) else target.group
    kinds = read_kinds(target.group, target.kind) or read_kinds(group, target.kind) or ()
    return tuple(
        msgspec.structs.replace(target, kind=kind, group=group_of_target(kind)) for kind in kinds
    )


def hint_at_kind(group: str, kind: str) -> str:
    """Return which kind of the experimental group is meant by a target that lacks its X, or has a slip; "" where none is."""
    if group != EXPERIMENTAL_GROUP or kind in _EXPERIMENTAL:
        return ""
    return did_you_mean(f"X{kind.removeprefix('X')}", _EXPERIMENTAL, alike=0.9)


def _is_other(group: object) -> bool:
    """Tell whether a group is another project's: a custom kind has a group with a dot, and only projects of Kubernetes end theirs as it does."""
    text = group.strip().lower().partition("/")[0] if isinstance(group, str) else ""
    if text in OTHER_GROUPS:
        return True
    if "." not in text or text in _GROUPS or len(text) > MAX_SHOWN_NAME:
        return False
    ours = text.endswith((".k8s.io", ".x-k8s.io")) or is_slip(text, _WRITTEN)
    return _GROUP.fullmatch(text) is not None and not ours
