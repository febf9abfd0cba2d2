"""Target kinds: which kinds of object a reference of a policy can name.

In: group and kind as they were written. Out: the exact kind; none for a kind that takes no
policies; every kind of target for an unknown kind, because only the name is exact then. For a
policy of another project, no kind for an object of another group.
Must never: take a reference of another project to an object of its own for one to edgefast's.
"""

from __future__ import annotations

import msgspec

from edgefast.api.edge.policy_target import (
    BACKEND_TARGETS,
    TARGET_KINDS,
    group_of_target,
)
from edgefast.api.kinds import EXPERIMENTAL_GROUP, KINDS
from edgefast.api.migration.foreign_kinds import CORE_KINDS, OTHER_GROUPS, OUR_GROUPS, UNREAD_KINDS
from edgefast.api.migration.target import Target
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import did_you_mean

__all__ = ["TARGETS", "hint_at_kind", "read_kinds", "spread_target"]

TARGETS = (*TARGET_KINDS, *BACKEND_TARGETS)
_OTHERS = frozenset({one.kind for one in KINDS.values()}.union(UNREAD_KINDS, CORE_KINDS)) - {
    *TARGETS
}
_EXPERIMENTAL = tuple(one for one in TARGETS if group_of_target(one) == EXPERIMENTAL_GROUP)
#: A custom kind of another project has a group with a dot. Consul's reference writes gateway.networking.kuberenetes.io.
_BEGIN, _END = "gateway.networking.", ".k8s.io"


def read_kinds(group: str, kind: str) -> tuple[str, ...]:
    """Return the kinds that a reference can name; in the experimental group the same names begin with X."""
    if kind in _OTHERS:
        return ()
    if kind in TARGETS and group_of_target(kind) == group:
        return (kind,)
    return tuple(one for one in (kind, f"X{kind}") if one in TARGETS) or TARGETS


def spread_target(target: Target) -> tuple[Target, ...]:
    """Return the targets that a policy of another project can name with one reference."""
    known = target.group in ("", *OUR_GROUPS)
    group = target.group.partition("/")[0].lower()
    ours = "." not in group or group.startswith(_BEGIN) or group.endswith(_END)
    if group in OTHER_GROUPS or not (known or ours):
        return ()
    return tuple(
        msgspec.structs.replace(target, kind=kind, group=group_of_target(kind))
        for kind in read_kinds(target.group if known else GATEWAY_GROUP, target.kind)
    )


def hint_at_kind(group: str, kind: str) -> str:
    """Return which kind of the experimental group is meant by a target that lacks its X, or has a slip; "" where none is."""
    if group != EXPERIMENTAL_GROUP or kind in _EXPERIMENTAL:
        return ""
    return did_you_mean(f"X{kind.removeprefix('X')}", _EXPERIMENTAL, alike=0.9)
