"""Policy: placeholders for SecurityPolicies and BackendTrafficPolicies with an error, which close their targets.

In: the plain value of an object, and its errors. Out: a policy without content (`closed`) and its
targets (`aimed`). Or the policy itself with the targets that fields beside `targetRefs`, or an
unknown kind there, name. A target counts by its exact kind and name, whatever its group; with
an unknown kind, every object of that name. An unreadable target can be any of the namespace.
Must never: raise for what a user wrote, or close anything of another namespace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from edgefast.api.decode.fail_closed.readable import items_of, note_closed, read_meta, read_spec
from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicy,
    BackendTrafficPolicySpec,
)
from edgefast.api.edge.policy_target import (
    BACKEND_TARGETS,
    TARGETS_OF,
    WHOLE,
    Newer,
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
from edgefast.api.kinds import KINDS
from edgefast.api.limits import MAX_CLOSED_PARTS
from edgefast.api.loaded import Path
from edgefast.api.migration.foreign_kinds import OUR_GROUPS, UNREAD_KINDS
from edgefast.api.migration.foreign_policy import read_target
from edgefast.api.migration.target_kinds import TARGETS, read_kinds
from edgefast.api.model.meta import LabelSelector
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = [
    "OWN_POLICIES",
    "OwnPolicy",
    "close_policy_object",
    "name_policy",
    "note_newer",
    "set_policy_target",
]

T = TypeVar("T")
OwnPolicy = SecurityPolicy | BackendTrafficPolicy | XBackendTrafficPolicy
#: By kind: the Struct and its `spec`.
_STRUCTS: dict[str, tuple[type[Any], type[Any]]] = {
    "SecurityPolicy": (SecurityPolicy, SecurityPolicySpec),
    "BackendTrafficPolicy": (BackendTrafficPolicy, BackendTrafficPolicySpec),
    "XBackendTrafficPolicy": (XBackendTrafficPolicy, XBackendTrafficPolicySpec),
}
OWN_POLICIES = tuple(_STRUCTS)
_KNOWN = tuple({one.kind for one in KINDS.values()}.union(UNREAD_KINDS))
_BESIDE = ("targetRef", "targetSelectors")
_FIELDS = ("targetRefs", *_BESIDE)
_PATHS = tuple(("spec", field) for field in _FIELDS)
#: The path of a target that is unreadable: it can be anything of the namespace.
_UNREADABLE: Path = ("spec",)
_EVERYTHING = tuple(
    PolicyTarget(path=_UNREADABLE, kind=kind, selector=LabelSelector()) for kind in TARGETS
)


def name_policy(raw: dict[str, Any], api_version: object, kind: object) -> str:
    """Return the kind of policy that an object of an unknown kind counts as: it names targets, and has a group of ours or none; "" for none."""
    group = api_version.partition("/")[0].lower() if isinstance(api_version, str) else ""
    spec = read_spec(raw)
    if (group and group not in OUR_GROUPS) or kind in _KNOWN or not spec.keys() & {*_FIELDS}:
        return ""
    aims = (one for field in _FIELDS for one in items_of(spec.get(field)))
    backend = any(isinstance(one, dict) and one.get("kind") in (*BACKEND_TARGETS,) for one in aims)
    return BackendTrafficPolicy.__name__ if backend else SecurityPolicy.__name__


def close_policy_object(
    raw: object, ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> OwnPolicy:
    """Return the closed policy of an object of the kind `ref.kind`; `repeated`: as in route.py."""
    value = raw if isinstance(raw, dict) else {}
    aims = read_spec(value)
    lost = not any(True for field in _FIELDS for _ in items_of(aims.get(field)))
    lost = lost or any(path[:2] in (("spec",), *_PATHS) for path in repeated)
    struct, spec = _STRUCTS[ref.kind]
    made: OwnPolicy = struct(
        metadata=read_meta(value.get("metadata"), ref),
        spec=spec(target_refs=()),
        closed=note_closed(first),
        aimed=_collect(_read_targets(aims, ref.kind, _FIELDS), lost=lost),
    )
    return made


def set_policy_target(obj: Any, raw: object) -> Any:
    """Return an object; a policy with the targets of its fields beside `targetRefs`, which are not served, and of unknown kinds."""
    if not isinstance(obj, OwnPolicy):
        return obj
    policy = type(obj).__name__
    aims = read_spec(raw) if obj.unserved and isinstance(raw, dict) else {}
    targets = _collect((*_read_unknown(obj, policy), *_read_targets(aims, policy, _BESIDE)))
    return msgspec.structs.replace(obj, aimed=targets) if targets else obj


def _collect(
    found: Iterable[PolicyTarget | None], *, lost: bool = False
) -> tuple[PolicyTarget, ...]:
    """Return the targets; with an unreadable one (None), or `lost`, also all of the namespace."""
    targets = tuple(found)
    named = tuple(one for one in targets if one is not None)
    return (*named, *_EVERYTHING) if lost or len(named) < len(targets) else named


def _read_unknown(policy: OwnPolicy, name: str) -> Iterator[PolicyTarget | None]:
    """Give the targets of unknown kinds: an API server accepts them only with other CRDs, or in a group of others for the standard's policies."""
    refs: Sequence[PolicyTargetReference | BackendTarget] = policy.spec.target_refs
    for at, ref in enumerate(refs):
        foreign = name in WHOLE and ref.group not in OUR_GROUPS
        if not foreign and not is_target(name, ref.group, ref.kind):
            yield from _read_target(msgspec.to_builtins(ref), ("spec", "targetRefs", at), name)


def _read_targets(
    spec: dict[str, Any], policy: str, fields: Iterable[str]
) -> Iterator[PolicyTarget | None]:
    """Give the targets that fields of a policy name."""
    for field in fields:
        given = spec.get(field)
        for at, one in enumerate(items_of(given)):
            path: Path = ("spec", field, at) if isinstance(given, list) else ("spec", field)
            if at == MAX_CLOSED_PARTS or not isinstance(one, dict):
                yield None
            else:
                yield from _read_target(one, path, policy)


def _read_target(one: dict[str, Any], path: Path, policy: str) -> Iterator[PolicyTarget | None]:
    target, section = read_target(one, path, ""), one.get("sectionName")
    whole = policy in WHOLE
    if target is None or not (whole or section is None or isinstance(section, str)):
        yield None
        return
    for kind in read_kinds(target.group, target.kind):
        if kind in TARGETS_OF[policy]:
            yield PolicyTarget(
                path=path,
                kind=kind,
                name=target.name,
                section="" if whole else target.section,
                selector=target.selector,
            )


def note_newer(present: T, newer: OwnPolicy | None) -> T:
    """Return a policy in force with the error and the readable targets of its next version, a closed policy; any other object as it is.

    What only the next version names is closed. Its unreadable targets close nothing while a valid version is in force.
    """
    if not isinstance(present, OwnPolicy):
        return present
    noted = None
    if newer is not None and newer.closed is not None:
        aimed = tuple(one for one in newer.aimed if one.path != _UNREADABLE)
        noted = Newer(closed=newer.closed, aimed=aimed, generation=newer.metadata.generation)
    return present if present.newer == noted else msgspec.structs.replace(present, newer=noted)
