"""Newer version: mistakes in the next version of a SecurityPolicy or BackendTrafficPolicy that is in force.

In: the version in force, and the readable part of the next one.
Out: the former with `newer`: the mistake, and the targets of that version, so that what only it
names is closed. A target that cannot be read closes nothing while a valid version is in force.
Must never: change what is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from edgefast.api.decode.fail_closed.fuzzy import note_closed, read_meta
from edgefast.api.decode.fail_closed.policy import read_policy_targets
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.policy_target import Newer, PolicyTarget, is_target
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.xbackendtrafficpolicy import XBackendTrafficPolicy
from edgefast.api.kinds import ref_of
from edgefast.api.loaded import Loaded
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.model.fail_closed import Closed
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef, Problem

__all__ = ["note_newer", "note_newer_files"]

T = TypeVar("T")


def note_newer(present: T, raw: object, ref: ObjectRef, first: Violation) -> T:
    """Return a policy whose newer version, an object of an API server, has a mistake; any other object as it is."""
    if not isinstance(present, SecurityPolicy | BackendTrafficPolicy | XBackendTrafficPolicy):
        return present
    value: dict[str, Any] = raw if isinstance(raw, dict) else {}
    spec = value.get("spec")
    newer = Newer(
        closed=note_closed(first),
        aimed=read_policy_targets(spec, unread=lambda path: ()) if isinstance(spec, dict) else (),
        generation=read_meta(value.get("metadata"), ref).generation,
    )
    return msgspec.structs.replace(present, newer=newer)


def note_newer_files(
    kept: Iterable[Loaded], problems: Sequence[Problem], policies: Sequence[ForeignPolicy]
) -> dict[ObjectRef, Loaded]:
    """Return, of objects that a file had, the policies that are in it with a mistake, with that noted; without, where nothing is known."""
    found = {}
    for item in kept:
        obj = item.obj
        if not isinstance(obj, SecurityPolicy | BackendTrafficPolicy | XBackendTrafficPolicy):
            continue
        ref = ref_of(obj)
        first = next((one for one in problems if _is_about(one, ref)), None)
        newer = None
        if first is not None and first.severity == "error":
            message = Closed(first.path, f"{first.reason} {first.message}")
            aims = (one for policy in policies if policy.ref == ref for one in _aims_of(policy))
            newer = Newer(closed=message, aimed=tuple(aims))
        if newer != obj.newer:
            item = Loaded(msgspec.structs.replace(obj, newer=newer), item.file, item.marks)
        found[ref] = item
    return found


def _is_about(problem: Problem, ref: ObjectRef) -> bool:
    """Tell whether a problem is an object's, or that of one that all but is it."""
    one = problem.object
    if one is None or (one.namespace, one.name) != (ref.namespace, ref.name):
        return False
    return one == ref or problem.path in ("kind", "apiVersion")


def _aims_of(policy: ForeignPolicy) -> Iterable[PolicyTarget]:
    for one, _ in policy.targets:
        if is_target(policy.ref.kind, one.group, one.kind):
            yield PolicyTarget(
                path=one.path,
                kind=one.kind,
                name=one.name,
                section=one.section,
                selector=one.selector,
            )
