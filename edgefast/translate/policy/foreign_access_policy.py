"""Foreign access policy: policies and annotations of other projects that decide access close their targets.

In: such policies in files (api/migration/access_policies.py) and their targets.
Out: an `EdgePolicyOutcome` for each, with one unit that answers 500. edgefast does not apply such a
policy, so requests that it denies would pass. `--ignore-foreign-policies` serves the targets open.
diagnostics/unapplied_policy.py reports the problems of served targets.
Must never: close anything for a policy of edgefast, or in a cluster, where foreign policies are not
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefast.api.gateway.gateway import Gateway
from edgefast.api.kinds import KINDS, Object
from edgefast.api.loaded import render_path
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.migration.target import Target as Named
from edgefast.api.migration.target import pod_labels
from edgefast.api.migration.target_kinds import spread_target
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.deps.policy_summary import (
    CLOSED,
    FAMILY_OF,
    OWN_KINDS,
    PolicySummary,
    Target,
    name_foreign,
)
from edgefast.translate.policy.outcome import EdgePolicyOutcome, close_policy
from edgefast.translate.policy.policy_targets import TARGETS, every_target, is_closed_by

__all__ = ["close_foreign", "report_foreign_access"]

#: A guard closes Gateways and routes as a SecurityPolicy does, backends as a BackendTrafficPolicy does.
_CLOSERS = ("SecurityPolicy", "BackendTrafficPolicy")
_YOUNGEST = 2**63 - 1  # as other objects of files (match/precedence.py)
_CLASS = "GatewayClass"


def close_foreign(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str, str], EdgePolicyOutcome]]:
    """Yield the outcome that closes the targets of each foreign policy that decides access, with its key."""
    found: dict[ObjectRef, list[ForeignPolicy]] = {}
    for policy in snapshot.foreign_policies:
        if policy.access_policies and (policy.ref.group, policy.ref.kind) not in OWN_KINDS:
            found.setdefault(policy.ref, []).append(policy)
    for ref, policies in found.items():
        targets: dict[Target, str] = {}
        for policy in policies:
            for target, path in _targets_of(policy, snapshot):
                targets.setdefault(target, path)
        for closer in _CLOSERS:
            closed = {one: path for one, path in targets.items() if _closer_of(one[0]) == closer}
            if closed:
                key = (closer, ref.namespace, name_foreign(ref))
                yield key, _close(key, ref, policies, closed)


def report_foreign_access(policy: ForeignPolicy) -> str:
    """Return a text with the fields of a policy that decide access."""
    return ", ".join(policy.access_policies)


def _closer_of(kind: str) -> str:
    return next(one for one in _CLOSERS if is_closed_by(one, kind))


def _close(
    key: tuple[str, str, str],
    ref: ObjectRef,
    policies: Sequence[ForeignPolicy],
    targets: dict[Target, str],
) -> EdgePolicyOutcome:
    age = (_YOUNGEST, f"{key[1]}/{key[2]}")
    shape = PolicySummary(age, FAMILY_OF[key[0]], (CLOSED,), "Override")
    message = dict.fromkeys(map(report_foreign_access, policies))
    what = f"{ref} of {ref.group} decides access ({'; '.join(message)})"
    if (ref.group, ref.kind) in KINDS:
        what = f"an annotation of {ref} decides access ({'; '.join(message)})"
    why = f"{what} and is not applied"
    return EdgePolicyOutcome(
        policy=None,
        shape=shape,
        targets=tuple(targets.items()),
        units=(close_policy(shape, why),),
        problems=(),
    )


def _targets_of(policy: ForeignPolicy, snapshot: Snapshot) -> Iterator[tuple[Target, str]]:
    named = [one for one, _ in policy.targets]
    if policy.lost:
        named += every_target(policy.ref.namespace)
    for one in named:
        path = render_path(one.path)
        if one.kind == _CLASS:
            for (namespace, name), gateway in snapshot.gateways.items():
                if _is_of_class(gateway, one, snapshot):
                    yield ("Gateway", namespace, name, ""), path
            continue
        for guess in spread_target(one):
            yield from ((target, path) for target in _find(guess, snapshot))


def _find(named: Named, snapshot: Snapshot) -> Iterator[Target]:
    if named.selector is None:
        yield named.kind, named.namespace, named.name, named.section
        return
    for (namespace, name), one in TARGETS[named.kind](snapshot).items():
        if named.namespace in ("", namespace) and named.selector.matches(_labels_of(one, named)):
            yield named.kind, namespace, name, named.section


def _is_of_class(gateway: Gateway, named: Named, snapshot: Snapshot) -> bool:
    name = gateway.spec.gateway_class_name
    if named.selector is None:
        return name == named.name
    found = snapshot.gateway_classes.get(("", name))
    return found is not None and named.selector.matches(found.metadata.labels)


def _labels_of(one: Object, named: Named) -> dict[str, str]:
    return pod_labels(one) if named.of_pods and isinstance(one, Gateway) else one.metadata.labels
