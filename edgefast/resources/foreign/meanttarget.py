"""Meant targets: which kind of object a reference of a policy names whose group or kind is all but right.

In: group and kind as they were written. Out: the kind of target that was meant; "" for what policies are not attached to: an object of
another project, or of a kind that is none of theirs; None where nobody can tell. Kinds of the experimental group have an X before them,
which is left out easily.
Must never: take a well-formed reference to another project's object for one of ours.
"""

from __future__ import annotations

import difflib
import re

import msgspec

from edgefast.resources.edge.policytarget import (
    BACKEND_TARGETS,
    LATER_KINDS,
    TARGET_KINDS,
    group_of_target,
)
from edgefast.resources.foreign.foreign import UNREAD_KINDS, is_slip
from edgefast.resources.foreign.target import Target
from edgefast.resources.kinds import EXPERIMENTAL_GROUP, KINDS
from edgefast.resources.limits import MAX_SHOWN_NAME
from edgefast.resources.model.reference import GATEWAY_GROUP

__all__ = ["hint_at_kind", "mean_target", "meant_kind"]

_TARGETS = frozenset({*TARGET_KINDS, *LATER_KINDS, *BACKEND_TARGETS})
_GROUPS = frozenset({GATEWAY_GROUP, *BACKEND_TARGETS.values()})
_WRITTEN = tuple(sorted(_GROUPS - {""}))
_BEGIN = "gateway.networking."
#: Of the letters of a kind, how many must agree for it to be taken for another one.
_ALIKE = 0.8
#: In the experimental group, whose other kinds are named much like those of ours.
_ALIKE_THERE = 0.9
_OTHER = re.compile("[^a-z0-9]")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KIND = re.compile(r"[a-zA-Z]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?")


def _fold(kind: str) -> str:
    return _OTHER.sub("", kind.lower())


_FOLDED = {
    _fold(kind): kind
    for kind in (*(info.kind for info in KINDS.values()), *UNREAD_KINDS, *_TARGETS)
}
_FOLDED_THERE = {
    _fold(info.kind): info.kind for info in KINDS.values() if info.group == EXPERIMENTAL_GROUP
}


def meant_kind(group: object, kind: object) -> str | None:
    """Return the kind of target that is meant; `group` is None where none is written."""
    if not isinstance(kind, str) or len(kind) > MAX_SHOWN_NAME:
        return None
    strange, near = _place_of(group)
    if strange:
        return ""
    folded = _fold(kind)
    near = near or (_written(group) == EXPERIMENTAL_GROUP and not folded.startswith("x"))
    found = _meant_there(group, folded) or _FOLDED.get(folded, "")
    if not found and near:
        alike = difflib.get_close_matches(folded, _FOLDED, n=1, cutoff=_ALIKE)
        found = _FOLDED[alike[0]] if alike else ""
    if found:
        return found if found in _TARGETS else ""
    return "" if _KIND.fullmatch(kind) else None


def mean_target(target: Target) -> Target | None:
    """Return the intended target of another project's policy, None for a target that policies of edgefast do not support.

    Consul's reference writes gateway.networking.kuberenetes.io.
    """
    kind = meant_kind(target.group, target.kind)
    if not kind and target.group.startswith(_BEGIN):
        kind = meant_kind(GATEWAY_GROUP, target.kind)
    if not kind:
        return None
    return msgspec.structs.replace(target, kind=kind, group=group_of_target(kind))


def hint_at_kind(group: str, kind: str) -> str:
    """Return which kind of the experimental group is meant by a target that lacks its X, or has a slip; "" where none is."""
    meant = _meant_there(group, _fold(kind)) if len(kind) <= MAX_SHOWN_NAME else ""
    return f"did you mean {meant}?" if meant in _TARGETS and meant != kind else ""


def _meant_there(group: object, folded: str) -> str:
    """Return the kind of the experimental group that is meant, "" for none, and for other groups."""
    if _written(group) != EXPERIMENTAL_GROUP:
        return ""
    whole = f"x{folded.removeprefix('x')}"
    alike = difflib.get_close_matches(whole, _FOLDED_THERE, n=1, cutoff=_ALIKE_THERE)
    return _FOLDED_THERE[alike[0]] if alike else ""


def _written(group: object) -> str:
    """Return the group that is written, without a version; "" where none is."""
    return group.strip().lower().partition("/")[0] if isinstance(group, str) else ""


def _place_of(group: object) -> tuple[bool, bool]:
    """Tell whether a group is another project's, and whether a kind of it may be a slip: in a group that cannot be read any may.

    A custom kind has a group with a dot, and none but the projects of Kubernetes have one that ends as theirs.
    """
    text = _written(group)
    if text == EXPERIMENTAL_GROUP:  # has kinds of its own, with names much like those of ours
        return False, False
    if text in _GROUPS or len(text) > MAX_SHOWN_NAME or not _GROUP.fullmatch(text):
        return False, True
    if "." not in text or is_slip(text, _WRITTEN):
        return False, True
    return not text.endswith(".k8s.io") and not text.endswith(".x-k8s.io"), False
