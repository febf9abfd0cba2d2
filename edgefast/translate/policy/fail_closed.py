"""Fail closed: what policies with an error close beside the targets of valid versions.

In: policies, and the targets that the decoder read of them (`aimed`, `newer`). Out: the objects that
these targets name. For a policy in force whose next version has an error, an `EdgePolicyOutcome`
with one unit that answers 500 for the targets that only the next version names. No policy may drop
that unit, since its merge type is unknown.
Source: shared design of policies (fail closed), as for BackendTLSPolicies (backendtlspolicy.py).
Must never: close a target of a policy with a last valid version, or of a policy of another project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from edgefast.api.edge.policy_target import LAYER4_TARGETS, PolicyTarget
from edgefast.api.kinds import Object, ref_of
from edgefast.api.loaded import render_path
from edgefast.api.snapshot import Key, Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.deps.policy_summary import CLOSED, FAMILY_OF, PolicySummary, Target
from edgefast.translate.policy.outcome import EdgePolicyOutcome, OwnPolicy, close_policy
from edgefast.translate.policy.policy_targets import TARGETS, is_closed_by

__all__ = ["NEWER", "OwnKey", "close_newer", "report_closed", "resolve_policy_targets", "tables_of"]

#: Kind, namespace, name.
OwnKey = tuple[str, str, str]

#: The end of the name of the outcome that closes the targets of a newer version.
NEWER = "?new"
_YOUNGEST = 2**63 - 1  # as other objects of files (match/precedence.py)
_FATES = dict.fromkeys(LAYER4_TARGETS, "connections are refused")


def tables_of(snapshot: Snapshot) -> dict[str, Mapping[Key, Object]]:
    """Return the tables of our own policies, by kind."""
    return {
        "SecurityPolicy": snapshot.security_policies,
        "BackendTrafficPolicy": snapshot.backend_traffic_policies,
        "XBackendTrafficPolicy": snapshot.x_backend_traffic_policies,
    }


def close_newer(policy: OwnPolicy, snapshot: Snapshot) -> tuple[OwnKey, EdgePolicyOutcome] | None:
    """Return what closes the targets that only a newer version, which has an error, of a policy in force names."""
    if policy.newer is None:
        return None
    ref, namespace = ref_of(policy), policy.metadata.namespace
    held = {
        (one.kind, namespace, one.name, one.section_name or "") for one in policy.spec.target_refs
    }
    held.update(target for target, _ in resolve_policy_targets(policy, snapshot))
    named = _resolve(policy.newer.aimed, ref.kind, namespace, snapshot)
    targets = tuple((target, path) for target, path in named.items() if target not in held)
    name = f"{policy.metadata.name}{NEWER}"
    age = (_YOUNGEST, f"{namespace}/{name}")
    shape = PolicySummary(age, FAMILY_OF[ref.kind], (CLOSED,), "Override")
    outcome = EdgePolicyOutcome(
        policy=None,
        shape=shape,
        targets=targets,
        units=(close_policy(shape, f"{ref}: {policy.newer.said}"),),
    )
    return ((ref.kind, namespace, name), outcome) if targets else None


def resolve_policy_targets(policy: OwnPolicy, snapshot: Snapshot) -> tuple[tuple[Target, str], ...]:
    """Return the targets of a policy that `targetRefs` does not name, with the field path of each."""
    kind, namespace = type(policy).__name__, policy.metadata.namespace
    return tuple(_resolve(policy.aimed, kind, namespace, snapshot).items())


def report_closed(
    ref: ObjectRef, path: str, target: Target, cause: str = "while the policy has an error"
) -> Problem:
    """Return the warning about a target that is closed."""
    kind, namespace, name, section = target
    named = f"{kind} {namespace}/{name}{f' ({section})' if section else ''}"
    message = f"{cause}, {_FATES.get(kind, 'requests get 500')} for {named}"
    return Problem(ref, path, "Invalid", message, severity="warning")


def _resolve(
    aims: Sequence[PolicyTarget], policy: str, namespace: str, snapshot: Snapshot
) -> dict[Target, str]:
    found: dict[Target, str] = {}
    for one in aims:
        if is_closed_by(policy, one.kind):
            for name in _names_of(one, namespace, snapshot):
                found.setdefault((one.kind, namespace, name, one.section), render_path(one.path))
    return found


def _names_of(one: PolicyTarget, namespace: str, snapshot: Snapshot) -> Iterator[str]:
    if one.selector is None:
        yield one.name
        return
    for (where, name), obj in TARGETS[one.kind](snapshot).items():
        if where == namespace and one.selector.matches(obj.metadata.labels):
            yield name
