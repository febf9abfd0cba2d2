"""Fail closed: policies of files with a mistake and without a last valid version; their targets answer 500.

In: the targets that the decoder read of such objects. Out: an `EdgePolicyOutcome` for each, with
one unit that answers 500. No policy may drop that unit, since its merge type is unknown. Several
outcomes of one name become one. This also applies to the targets of present policies that unserved
fields name, or that only a newer version with a mistake names.
Source: shared design of policies (fail closed), as for BackendTLSPolicies (backendtlspolicy.py).
Must never: close a target of a policy with a last valid version, or of a policy of another project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from edgefast.api.core.service import Service
from edgefast.api.edge.policy_target import (
    LATER_KINDS,
    PolicyTarget,
    group_of_target,
    is_target,
)
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.grpcroute import GRPCRoute
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.gateway.layer4_route import StreamRoute
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.kinds import Object, ref_of
from edgefast.api.loaded import render_path
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.migration.target import Target as Named
from edgefast.api.model.fail_closed import is_closed
from edgefast.api.model.route_name import ROUTE_KINDS
from edgefast.api.snapshot import Key, Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem, Source
from edgefast.translate.deps.policy_summary import (
    CLOSED,
    FAMILY_OF,
    OWN_KINDS,
    PolicySummary,
    Target,
)
from edgefast.translate.policy.foreign_access_policy import close_foreign
from edgefast.translate.policy.missing_target import report_missing_section, report_missing_target
from edgefast.translate.policy.outcome import EdgePolicyOutcome, OwnPolicy, close_policy
from edgefast.translate.policy.policy_targets import TARGETS, every_target

__all__ = ["OwnKey", "close_newer", "find_closed", "resolve_policy_targets", "tables_of"]

#: Kind, namespace, name.
OwnKey = tuple[str, str, str]

#: What stands behind the name of what closes the targets of a newer version.
_NEWER = "?new"
_YOUNGEST = 2**63 - 1  # as other objects of files (match/precedence.py)
_PARTS = {
    **dict.fromkeys(("Gateway", "ListenerSet"), "listener"),
    **dict.fromkeys(ROUTE_KINDS, "named rule"),
}
_FATES = dict.fromkeys(LATER_KINDS, "all requests are refused")


def tables_of(snapshot: Snapshot) -> dict[str, Mapping[Key, Object]]:
    """Return the tables of our own policies, by kind."""
    return {
        "SecurityPolicy": snapshot.security_policies,
        "BackendTrafficPolicy": snapshot.backend_traffic_policies,
        "XBackendTrafficPolicy": snapshot.x_backend_traffic_policies,
    }


def find_closed(snapshot: Snapshot, *, foreign: bool) -> dict[OwnKey, EdgePolicyOutcome]:
    """Return the outcomes of such policies by key; `foreign`: also of other projects' policies that decide access."""
    found: dict[OwnKey, list[ForeignPolicy]] = {}
    for policy in snapshot.foreign_policies:
        ref = policy.ref
        if (ref.group, ref.kind) not in OWN_KINDS:
            continue
        key = (ref.kind, ref.namespace, ref.name)
        if key[1:] not in tables_of(snapshot)[ref.kind]:
            found.setdefault(key, []).append(policy)
    closed = {key: _close(policies, snapshot) for key, policies in found.items()}
    return {**closed, **dict(close_foreign(snapshot))} if foreign else closed


def close_newer(policy: OwnPolicy, snapshot: Snapshot) -> tuple[OwnKey, EdgePolicyOutcome] | None:
    """Return what closes the targets that only a newer version, which has a mistake, of a policy in force names."""
    if policy.newer is None:
        return None
    ref, namespace = ref_of(policy), policy.metadata.namespace
    held = {
        (one.kind, namespace, one.name, one.section_name or "") for one in policy.spec.target_refs
    }
    held.update(target for target, _ in resolve_policy_targets(policy, snapshot))
    targeted = _resolve(policy.newer.aimed, ref.kind, namespace, snapshot)
    targets = tuple((target, path) for target, path in targeted.items() if target not in held)
    name = f"{policy.metadata.name}{_NEWER}"
    shape = PolicySummary(
        (_YOUNGEST, f"{namespace}/{name}"), FAMILY_OF[ref.kind], (CLOSED,), "Override"
    )
    outcome = EdgePolicyOutcome(
        policy=None,
        shape=shape,
        targets=targets,
        units=(close_policy(shape, f"{ref}: {policy.newer.said}"),),
        problems=tuple(
            _notify(ref, path, target, None, snapshot)
            for target, path in targets
            if not _is_guess(target, path, targets, snapshot)
        ),
    )
    return ((ref.kind, namespace, name), outcome) if targets else None


def resolve_policy_targets(policy: OwnPolicy, snapshot: Snapshot) -> tuple[tuple[Target, str], ...]:
    """Return what a policy is aimed at, with the field path of each."""
    kind, namespace = type(policy).__name__, policy.metadata.namespace
    return tuple(_resolve(policy.aimed, kind, namespace, snapshot).items())


def _resolve(
    aims: Sequence[PolicyTarget], policy: str, namespace: str, snapshot: Snapshot
) -> dict[Target, str]:
    found: dict[Target, str] = {}
    for one in aims:
        named = Named(
            path=one.path,
            group=group_of_target(one.kind),
            kind=one.kind,
            namespace=namespace,
            name=one.name,
            selector=one.selector,
            section=one.section,
        )
        for target in _targets_of(named, policy, snapshot):
            found.setdefault(target, render_path(one.path))
    return found


def _close(policies: Sequence[ForeignPolicy], snapshot: Snapshot) -> EdgePolicyOutcome:
    """Return what comes of all of one name."""
    ref = policies[0].ref
    age = (_YOUNGEST, f"{ref.namespace}/{ref.name}")
    shape = PolicySummary(age, FAMILY_OF[ref.kind], (CLOSED,), "Override")
    why = next((one.why for one in policies if one.why), "")
    targets: dict[Target, str] = {}
    reported = []
    for policy in policies:
        for named in every_target(ref.namespace) if policy.lost else ():
            targets.update((one, "spec") for one in _targets_of(named, ref.kind, snapshot))
    if lost := next((one for one in policies if one.lost), None):
        message = f"a target cannot be read; while the policy has an error, all requests of namespace {ref.namespace} get 500"
        message += (
            ", and connections of its TCPRoutes, TLSRoutes and UDPRoutes are refused"
            if shape.family == "security"
            else ""
        )
        reported.append(
            Problem(ref, "spec", "Invalid", message, "", lost.source, severity="warning")
        )
    targeted = [
        (target, render_path(named.path), source)
        for named, source in chain.from_iterable(one.targets for one in policies)
        for target in _targets_of(named, ref.kind, snapshot)
    ]
    places = [(target, path) for target, path, _ in targeted]
    for target, path, source in targeted:
        if target not in targets:
            whole = (*target[:3], "") in targets  # that is told already
            targets[target] = path
            if not whole and not _is_guess(target, path, places, snapshot):
                reported.append(_notify(ref, path, target, source, snapshot))
    return EdgePolicyOutcome(
        policy=None,
        shape=shape,
        targets=tuple(targets.items()),
        units=(close_policy(shape, f"{ref} has an error{why and f': {why}'}"),),
        problems=tuple(reported),
    )


def _is_guess(
    target: Target, path: str, targets: Sequence[tuple[Target, str]], snapshot: Snapshot
) -> bool:
    """Tell whether a target does not exist, and its reference may name another kind: only what exists is reported."""
    kind, namespace, name, _ = target
    if (namespace, name) in TARGETS[kind](snapshot):
        return False
    return any(at == path and one[0] != kind for one, at in targets)


def _notify(
    ref: ObjectRef, path: str, target: Target, source: Source | None, snapshot: Snapshot
) -> Problem:
    """Say what becomes of a target: one that is not there, or has no such part, is no place at which anything is answered."""
    kind, namespace, name, section = target
    named, found = f"{kind} {namespace}/{name}", TARGETS[kind](snapshot).get((namespace, name))
    if found is None:
        missing = report_missing_target(ref, path, named)
    elif section and not is_closed(found) and section not in (parts := _parts_of(found)):
        missing = report_missing_section(
            ref, path, named, section, parts, _PARTS.get(kind, "named port")
        )
    else:
        return _report_closed(ref, path, target, source)
    return msgspec.structs.replace(missing, source=source)


def _parts_of(found: Object) -> list[str]:
    if isinstance(found, Gateway | ListenerSet):
        return [one.name for one in found.spec.listeners]
    if isinstance(found, HTTPRoute | GRPCRoute | StreamRoute):
        return [one.name for one in found.spec.rules if one.name]
    if isinstance(found, Service):
        return [one.name for one in found.spec.ports if one.name]
    return []


def _report_closed(ref: ObjectRef, path: str, target: Target, source: Source | None) -> Problem:
    section = f" ({target[3]})" if target[3] else ""
    message = (
        f"while the policy has an error, {_FATES.get(target[0], 'requests get 500')} for "
        f"{target[0]} {target[1]}/{target[2]}{section}"
    )
    return Problem(ref, path, "Invalid", message, "", source, severity="warning")


def _targets_of(named: Named, policy: str, snapshot: Snapshot) -> Iterator[Target]:
    """Give what policies of a kind are attached to; nothing where they cannot be."""
    if not is_target(policy, named.group, named.kind):
        return
    if named.selector is None:
        yield named.kind, named.namespace, named.name, named.section
        return
    for (namespace, name), one in TARGETS[named.kind](snapshot).items():
        if namespace == named.namespace and named.selector.matches(one.metadata.labels):
            yield named.kind, namespace, name, named.section
