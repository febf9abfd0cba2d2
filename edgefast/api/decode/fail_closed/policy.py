"""Policy: placeholders for SecurityPolicies and BackendTrafficPolicies with a mistake, which close their targets.

In: the plain value of an object, and its mistakes. Out: a policy without content (`closed`) and its
targets (`aimed`). Or the policy itself with targets that fields beside `targetRefs`, or misspelt
ones, name. A target that cannot be read may be any of the namespace.
Must never: raise for what a user wrote, or close anything of another namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from edgefast.api.decode.fail_closed.fuzzy import items_of, note_closed, read_meta
from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicy,
    BackendTrafficPolicySpec,
)
from edgefast.api.edge.policy_target import (
    BACKEND_TARGETS,
    CLOSED_BY,
    LATER_KINDS,
    TARGET_KINDS,
    WHOLE,
    PolicyTarget,
    PolicyTargetReference,
    is_target,
)
from edgefast.api.edge.securitypolicy import SecurityPolicy, SecurityPolicySpec
from edgefast.api.gateway.xbackendtrafficpolicy import (
    BackendTarget,
    XBackendTrafficPolicy,
    XBackendTrafficPolicySpec,
)
from edgefast.api.limits import MAX_CLOSED_PARTS
from edgefast.api.loaded import Path
from edgefast.api.migration.foreign_policy import read_target
from edgefast.api.migration.target_guess import read_kinds
from edgefast.api.model.meta import LabelSelector
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = [
    "OwnPolicy",
    "set_policy_target",
    "close_policy_object",
    "is_own_policy",
    "read_policy_targets",
]

OwnPolicy = SecurityPolicy | BackendTrafficPolicy | XBackendTrafficPolicy

_BESIDE = ("targetRef", "targetSelectors")
_KINDS = frozenset(
    one.__name__ for one in (SecurityPolicy, BackendTrafficPolicy, XBackendTrafficPolicy)
)


def is_own_policy(kind: str) -> bool:
    """Tell whether an object of this kind closes its targets when it cannot be had."""
    return kind in _KINDS


def close_policy_object(raw: object, ref: ObjectRef, first: Violation) -> OwnPolicy:
    """Return what keeps the targets of a policy closed whose first mistake this is."""
    value = raw if isinstance(raw, dict) else {}
    spec = value.get("spec")
    targeted = read_policy_targets(spec, policy=ref.kind) if isinstance(spec, dict) else ()
    meta = msgspec.structs.replace(read_meta(value.get("metadata"), ref), name=ref.name)
    closed = note_closed(first)
    targeted = targeted or _everything(("spec",))
    if ref.kind == SecurityPolicy.__name__:
        return SecurityPolicy(
            metadata=meta, spec=SecurityPolicySpec(target_refs=()), closed=closed, aimed=targeted
        )
    if ref.kind == XBackendTrafficPolicy.__name__:
        none = XBackendTrafficPolicySpec(target_refs=())
        return XBackendTrafficPolicy(metadata=meta, spec=none, closed=closed, aimed=targeted)
    plain = BackendTrafficPolicySpec(target_refs=())
    return BackendTrafficPolicy(metadata=meta, spec=plain, closed=closed, aimed=targeted)


def set_policy_target(obj: Any, raw: object) -> Any:
    """Return an object; a policy with what its fields beside `targetRefs`, which are not served, and slips in these, mean it for."""
    if not isinstance(obj, SecurityPolicy | BackendTrafficPolicy | XBackendTrafficPolicy):
        return obj
    targeted = tuple(_target_slips(obj))
    spec = raw.get("spec") if obj.unserved and isinstance(raw, dict) else None
    if isinstance(spec, dict):
        targeted += read_policy_targets(spec, _BESIDE, policy=type(obj).__name__)
    return msgspec.structs.replace(obj, aimed=targeted) if targeted else obj


def _target_slips(policy: OwnPolicy) -> Iterator[PolicyTarget]:
    """Give what targets may name whose group or kind has a slip: an API server lets none pass, but for one whose CRDs are others."""
    name = type(policy).__name__
    refs: Sequence[PolicyTargetReference | BackendTarget] = policy.spec.target_refs
    for at, ref in enumerate(refs):
        if not is_target(name, ref.group, ref.kind):
            one = {"group": ref.group, "kind": ref.kind, "name": ref.name}
            one |= {"sectionName": ref.section_name} if ref.section_name else {}
            yield from _read_aim(one, ("spec", "targetRefs", at), _everything, name)


def read_policy_targets(
    spec: dict[str, Any],
    fields: tuple[str, ...] = ("targetRefs", *_BESIDE),
    *,
    unread: Callable[[Path], tuple[PolicyTarget, ...]] | None = None,
    policy: str = BackendTrafficPolicy.__name__,
) -> tuple[PolicyTarget, ...]:
    """Return what fields of a policy of a kind name; `unread`: what a target is that cannot be read, by default all of the namespace."""
    unread = unread or _everything
    found: list[PolicyTarget] = []
    for field in fields:
        given = spec.get(field)
        for at, one in enumerate(items_of(given)):
            path: Path = ("spec", field, at) if isinstance(given, list) else ("spec", field)
            if at == MAX_CLOSED_PARTS or not isinstance(one, dict):
                found += unread(path)
            else:
                found += _read_aim(one, path, unread, policy)
    return tuple(found)


def _read_aim(
    one: dict[str, Any], path: Path, unread: Callable[[Path], tuple[PolicyTarget, ...]], policy: str
) -> Iterator[PolicyTarget]:
    target, kinds = read_target(one, path, ""), read_kinds(one.get("group"), one.get("kind"))
    section = None if policy in WHOLE else one.get("sectionName")
    if target is None or kinds is None or (section is not None and not isinstance(section, str)):
        yield from unread(path)
        return
    for kind in kinds:
        if kind in CLOSED_BY[policy]:
            yield PolicyTarget(
                path=path,
                kind=kind,
                name=target.name,
                section="" if policy in WHOLE else target.section,
                selector=target.selector,
            )


def _everything(path: Path) -> tuple[PolicyTarget, ...]:
    kinds = (*TARGET_KINDS, *LATER_KINDS, *BACKEND_TARGETS)
    return tuple(PolicyTarget(path=path, kind=kind, selector=LabelSelector()) for kind in kinds)
