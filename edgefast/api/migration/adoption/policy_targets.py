"""Policy targets: targetRef, targetRefs, targetSelectors and mergeType of Envoy Gateway as those of edgefast.

In: the fields of a policy. Out: targetRefs, selectors and notes. Without `mergeType` a route's policy of Envoy Gateway replaces
those above it, which is `Replace` here.
Must never: adopt a policy with a target that cannot be read, or one in other namespaces: it is closed as a policy of another project.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgefast.api.edge.policy_target import BACKEND_TARGETS, TARGET_KINDS
from edgefast.api.loaded import Path
from edgefast.api.migration.adoption.adopted_document import Note
from edgefast.api.migration.adoption.fields import Fields
from edgefast.api.migration.foreign_policy import read_target
from edgefast.api.model.policy_target import PolicyTarget
from edgefast.api.model.reference import GATEWAY_GROUP

__all__ = ["Targets", "is_merging", "read_merge", "take_targets"]

_SELECTED = (*TARGET_KINDS, *BACKEND_TARGETS)
_ROUTES = ("HTTPRoute", "GRPCRoute", *BACKEND_TARGETS)
_MERGES = ("StrategicMerge", "JSONMerge")


class Targets(msgspec.Struct, frozen=True):
    """The targets of a policy."""

    refs: tuple[dict[str, Any], ...] = ()
    selectors: tuple[PolicyTarget, ...] = ()

    @property
    def kinds(self) -> set[str]:
        """The kinds of all targets."""
        named = {str(one.get("kind")) for one in self.refs}
        return named | {one.kind for one in self.selectors}


def take_targets(fields: Fields) -> Targets | None:
    """Return the targets; None: a part of them cannot be read or is in other namespaces."""
    one, several = fields.take("targetRef"), fields.take("targetRefs")
    refs = [one] if one is not None else []
    refs += several if isinstance(several, list) else [] if several is None else [several]
    for ref in refs:
        if not isinstance(ref, dict) or read_target(ref, (), "") is None or "namespace" in ref:
            return None
        ref.setdefault("group", GATEWAY_GROUP)
    given = fields.take("targetSelectors")
    found: list[PolicyTarget] = []
    for at, selector in enumerate(given if isinstance(given, list) else []):
        target = _read_selector(selector, ("spec", "targetSelectors", at))
        if target is None:
            return None
        found.append(target)
    if not (refs or found) or not isinstance(given, list | None):
        return None
    return Targets(tuple(refs), tuple(found))


def _read_selector(one: object, path: Path) -> PolicyTarget | None:
    if not isinstance(one, dict) or "name" in one:
        return None
    namespaces = one.get("namespaces")
    if namespaces is not None:
        if not isinstance(namespaces, dict) or namespaces.get("from", "Same") != "Same":
            return None
        one = {name: value for name, value in one.items() if name != "namespaces"}
    target = read_target(one, path, "")
    if target is None or target.selector is None or target.kind not in _SELECTED:
        return None
    if target.group != (BACKEND_TARGETS.get(target.kind, GATEWAY_GROUP)):
        return None
    return PolicyTarget(
        path=path, kind=target.kind, section=target.section, selector=target.selector
    )


def is_merging(raw: dict[str, Any]) -> bool:
    """Tell whether a policy keeps fields of the policies above it inside a field that both set."""
    spec = raw.get("spec")
    return isinstance(spec, dict) and spec.get("mergeType") in _MERGES


def read_merge(fields: Fields, targets: Targets) -> tuple[str, tuple[Note, ...]]:
    """Return `mergeType` of edgefast, and what is different about it."""
    word = fields.take("mergeType")
    path: Path = ("spec", "mergeType")
    if word in _MERGES:
        return "Inherit", ()
    if word not in (None, "Replace"):
        shown = word if isinstance(word, str) and len(word) < 64 else "it"
        message = f'"{shown}" is not known, Inherit applies'
        return "Inherit", (Note(path, message, "supported: StrategicMerge, JSONMerge, Replace"),)
    routes = targets.kinds.intersection(_ROUTES)
    if not routes:
        return "Inherit", ()
    if routes == targets.kinds:
        return "Replace", ()
    message = "a policy of routes and of what is above them inherits here, and does not replace"
    return "Inherit", (Note(path, message, "write one policy for the routes"),)
