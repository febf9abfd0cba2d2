"""Outcome: the translation of one SecurityPolicy or BackendTrafficPolicy, independent of other policies on its targets.

In: a policy. Out: its targets and summary, its units with their clusters, every mistake. What both
kinds share is here: targets, mergeType, fields that are not served.
Source: GEP-713. A policy with a mistake as a whole has one unit, which answers 500.
Must never: look whether a target exists (status/policy_target.py does): a policy on nothing is
harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from edgefast import ir
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.policy_target import (
    PASSES,
    TARGETS_OF,
    PolicyTargetReference,
    is_target,
)
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.xbackendtrafficpolicy import BackendTarget, XBackendTrafficPolicy
from edgefast.api.kinds import ref_of
from edgefast.api.migration.target_kinds import hint_at_kind
from edgefast.api.model.origin import is_made
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import Problem, did_you_mean, supported_text
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Fact, Reader
from edgefast.translate.deps.policy_summary import (
    CLOSED,
    Family,
    Merge,
    PolicySummary,
    Target,
    Unit,
)
from edgefast.translate.match.precedence import age_order
from edgefast.translate.policy.missing_target import report_missing_target
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import refuse_unserved, warn_unserved

__all__ = [
    "Aims",
    "EdgePolicyOutcome",
    "OwnPolicy",
    "UnitOutcome",
    "check_whole",
    "close_policy",
    "make_traffic_outcome",
    "note_version",
    "shape_policy",
    "warn_empty",
]

OwnPolicy = SecurityPolicy | BackendTrafficPolicy | XBackendTrafficPolicy
#: Targets with the field path of each.
Aims = tuple[tuple[Target, str], ...]

#: Overrides before others (False), then the oldest.
Rank = tuple[bool, tuple[int, str]]

_MERGES: dict[str, Merge] = {"Inherit": "Inherit", "Replace": "Replace", "Override": "Override"}
_FRONTS = ("Gateway", "ListenerSet")
_MAX_TARGETS = 16


class UnitOutcome(msgspec.Struct, frozen=True, gc=False):
    """One unit, and the clusters that it asks."""

    unit: ir.PolicyUnit
    clusters: tuple[ClusterRef, ...] = ()
    rank: Rank = (False, (0, ""))  # of traffic: who comes first where not everybody can have it


class EdgePolicyOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One policy."""

    policy: OwnPolicy | None  # None: of another project, or of a newer version with an error
    shape: PolicySummary
    targets: Aims
    aimed: Aims = ()  # of these, what no targetRef says
    units: tuple[UnitOutcome, ...]
    reads: tuple[Fact, ...] = ()  # of Reader.noted
    clusters: tuple[ClusterRef, ...] = ()  # all that were looked at
    refused: tuple[Problem, ...] = ()
    unresolved: tuple[Problem, ...] = ()
    unavailable: tuple[Problem, ...] = ()  # services without endpoints
    problems: tuple[Problem, ...] = ()


def check_whole(policy: OwnPolicy, targeted: Aims, report: Report) -> tuple[Aims, str]:
    """Return the targets of a policy, and why all of it is closed, "" when it is not."""
    fate = "requests to its targets get 500"
    if policy.closed is not None:
        path, reason = policy.closed.path, policy.closed.reason
        message = f"{reason}; {policy.closed.since.format('policy')}, {fate}"
        # The decoder reported it. The table has no value that a user wrote.
        report.follow(report.refuse(path, "Invalid", message, condition="Invalid"))
        return targeted, f"{ref_of(policy)} has an error: {path}: {reason.partition(' ')[0]}"
    if policy.newer is not None:
        path = policy.newer.closed.path
        message = f"{policy.newer.closed.reason}; the previous version stays in force, and requests to new targets get 500"
        report.refuse(path, "Invalid", message, condition="Invalid")
    targets, slips = _find_targets(policy, report)
    before, count = len(report.refused), len(policy.spec.target_refs)
    selects = not isinstance(policy, XBackendTrafficPolicy) and policy.adopted is not None
    if count > _MAX_TARGETS and not selects:
        message = f"{count} targets, at most {_MAX_TARGETS}"
        report.refuse("spec.targetRefs", "TooMany", message, condition="Invalid")
    _check_merge(policy, targets, report)
    refuse_unserved(policy, report, fate, reason="NotSupported", condition="Invalid")
    warn_unserved(policy, report)
    closing = [*slips, *report.refused[before:]]
    for target, path in targeted:
        targets.setdefault(target, path)
    return tuple(targets.items()), closing[0].text() if closing else ""


def _find_targets(policy: OwnPolicy, report: Report) -> tuple[dict[Target, str], list[Problem]]:
    """Return the targets that are as they should be, and what is said of those that are all but that: what they are for is among `aimed`."""
    name, namespace = type(policy).__name__, policy.metadata.namespace
    kinds, guess = TARGETS_OF[name], {one.path for one in policy.aimed}
    targets: dict[Target, str] = {}
    slips: list[Problem] = []
    refs: Sequence[PolicyTargetReference | BackendTarget] = policy.spec.target_refs
    for at, ref in enumerate(refs):
        path = f"spec.targetRefs[{at}]"
        if not is_target(name, ref.group, ref.kind):
            named = f"{ref.group}/{ref.kind}" if ref.group != GATEWAY_GROUP else ref.kind
            hint = hint_at_kind(ref.group, ref.kind)
            if ref.group == GATEWAY_GROUP:
                hint = did_you_mean(ref.kind, kinds)
            message, slip = supported_text(named, kinds), ("spec", "targetRefs", at) in guess
            problem = report.refuse(
                f"{path}.kind",
                "NotSupported",
                message if slip else f"{message}; {PASSES}",
                hint,
                condition="Invalid" if slip else "TargetNotFound",
            )
            slips += [problem] if slip else []
        elif is_made(ref.name) and not is_made(policy.metadata.name):  # it serves an Ingress
            missing = report_missing_target(
                report.object, path, f"{ref.kind} {namespace}/{ref.name}"
            )
            report.lose(missing.path, "TargetNotFound", missing.message)
        else:
            targets.setdefault((ref.kind, namespace, ref.name, ref.section_name or ""), path)
    return targets, slips


def _check_merge(policy: OwnPolicy, targets: dict[Target, str], report: Report) -> None:
    word = policy.spec.merge_type
    if word not in _MERGES:
        hint = did_you_mean(word, _MERGES)
        message = supported_text(word, _MERGES)
        report.refuse("spec.mergeType", "NotSupported", message, hint, condition="Invalid")
    kinds = dict.fromkeys(kind for kind, *_ in targets)
    wrong = [one for one in kinds if (one in _FRONTS) != (word == "Override")]
    if word in ("Replace", "Override") and wrong:
        message = f"{word} is not for {wrong[0]}s: " + (
            "they are the lowest level" if word == "Override" else "it drops what routes inherit"
        )
        report.refuse("spec.mergeType", "Forbidden", message, condition="Invalid")


def note_version(policy: OwnPolicy, units: Iterable[UnitOutcome]) -> tuple[UnitOutcome, ...]:
    """Return units that say of themselves when they are of the version before."""
    if policy.newer is None:
        return tuple(units)
    message = policy.newer.said
    return tuple(
        msgspec.structs.replace(one, unit=msgspec.structs.replace(one.unit, reason=message))
        if not one.unit.status
        else one
        for one in units
    )


def shape_policy(
    policy: OwnPolicy, family: Family, units: tuple[Unit, ...], asks: tuple[str, ...] = ()
) -> PolicySummary:
    """Return the shape of a policy; one of which nobody knows what it is for, or how it merges, can be dropped by nobody."""
    unknown = policy.closed is not None or policy.aimed
    merge = "Override" if unknown else _MERGES.get(policy.spec.merge_type, "Override")
    age = age_order(policy.metadata)
    return PolicySummary(age=age, family=family, units=units, merge=merge, asks=asks)


def warn_empty(policy: OwnPolicy, *, said: bool, report: Report) -> None:
    """Tell of a policy that says nothing: what was to be said may be a field that is null. One that replaces what is above says that."""
    adopted = getattr(policy, "adopted", None)  # its settings are on routes
    if not said and adopted is None and policy.spec.merge_type != "Replace":
        report.warn("spec", "Required", "the policy has no settings")


def close_policy(shape: PolicySummary, why: str) -> UnitOutcome:
    """Return the one unit of a closed policy."""
    return UnitOutcome(ir.PolicyUnit(name=shape.unit(CLOSED), status=500, reason=why))


def make_traffic_outcome(
    policy: OwnPolicy,
    targets: tuple[Aims, Aims],
    traffic: tuple[Family, ir.Traffic | None],
    closed: str,
    reader: Reader,
    report: Report,
    clusters: tuple[ClusterRef, ...] = (),
) -> EdgePolicyOutcome:
    """Return what a policy of backends comes to.

    `targets`: all, and those that no targetRef says; of `traffic` None is a policy that says nothing; `closed`: why all of it is, or "".
    `clusters`: of services that write error pages.
    """
    family, made = traffic
    warn_empty(policy, said=bool(closed) or made is not None, report=report)
    shape = shape_policy(
        policy, family, (CLOSED,) if closed else () if made is None else ("traffic",)
    )
    units: tuple[UnitOutcome, ...] = ()
    if closed:
        units = (close_policy(shape, closed),)
    elif made is not None:
        unit = ir.PolicyUnit(name=shape.unit("traffic"), traffic=made)
        units = (UnitOutcome(unit, clusters, rank=(shape.merge != "Override", shape.age)),)
    return EdgePolicyOutcome(
        policy=policy,
        shape=shape,
        targets=targets[0],
        aimed=targets[1],
        units=note_version(policy, units),
        reads=reader.noted(),
        clusters=tuple(sorted(reader.clusters.union(clusters))),
        refused=tuple(report.refused),
        unresolved=tuple(report.unresolved),
        unavailable=tuple(report.unavailable),
        problems=report.problems,
    )
