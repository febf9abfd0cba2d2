"""Edge policy: statuses of SecurityPolicies and BackendTrafficPolicies, one entry per Gateway at or above a target.

In: the policies, their attachments, the outcomes of routes.
Out: a PolicyStatus for each policy with an ancestor, and the problems of targets. It updates only
policies with a changed object, neighbour on a target, route or use; all when Gateways changed.
Conditions: Accepted, ResolvedRefs and Programmed. Programmed has reason Overridden, with the
winner, where a unit of the policy applies nowhere. It has NotSupported where routes of layer 4 are
below the policy, or its backend check exceeds the limit.
Source: GEP-713 (PolicyStatus: at most 16 ancestors; a policy with more still applies, and a problem
reports it).
Must never: list a Gateway of another controller, or differ from a result without a previous one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.policy_target import BACKEND_TARGETS, group_of_target
from edgefast.api.model.origin import is_made
from edgefast.api.model.reference import ParentReference
from edgefast.api.snapshot import Key
from edgefast.api.validation.policy_target import list_request_leaves
from edgefast.collections.sorted_map import EMPTY, SortedMap
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.conditions.status import PolicyAncestorStatus, PolicyStatus
from edgefast.translate.deps.dependency_facts import Fact, World
from edgefast.translate.deps.policy_summary import (
    CLOSED,
    GROUP_OF,
    KIND_OF,
    Level,
    PolicySummary,
    Target,
    Unit,
    owner_of_unit,
)
from edgefast.translate.fleet.fleet_cache import FleetCaches
from edgefast.translate.policy.edge_policies import EdgePolicies
from edgefast.translate.policy.fail_closed import NEWER, OwnKey, report_closed
from edgefast.translate.policy.outcome import EdgePolicyOutcome
from edgefast.translate.route.routes import Routes
from edgefast.translate.status.backend_reference import find_backend_place
from edgefast.translate.status.policy_conditions import (
    accepted_condition,
    programmed_condition,
    report_closed_targets,
    report_skipped_checks,
    report_uncovered,
    warn_lost,
)
from edgefast.translate.status.policy_target import Effect, find_place
from edgefast.translate.status.policy_usage import PolicyUse, PolicyUses
from edgefast.translate.status.policy_warnings import find_suspects
from edgefast.translate.status.skipped_health_checks import SkippedChecks, find_skipped_checks
from edgefast.translate.status.tls_policy import MAX_ANCESTORS

__all__ = ["EdgePolicyStatuses", "find_asked", "compute_edge_policy_statuses"]


class EdgePolicyStatuses(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all policies of our own, by kind, and what is told beside the mistakes of the objects."""

    by_kind: Mapping[str, SortedMap[Key, PolicyStatus]] = {}
    told: SortedMap[OwnKey, tuple[Problem, ...]] = EMPTY
    unmade: SkippedChecks = SkippedChecks()

    def of(self, kind: str) -> SortedMap[Key, PolicyStatus]:
        """Return those of a kind."""
        return self.by_kind.get(kind, EMPTY)

    def problems(self, own: EdgePolicies, *, standalone: bool) -> Iterator[Problem]:
        """Give the problems of all policies, or of those that have a status."""
        for key, outcome in own.outcomes.items():
            named = (key[1], key[2].partition("?")[0])  # a newer version has no status of its own
            if standalone or named in self.of(key[0]) or is_made(key[2]):
                yield from outcome.problems
                yield from self.told.get(key, ())


def find_asked(
    own: EdgePolicies, evaluated: EdgePolicyStatuses, world: World
) -> dict[Key, set[Key]]:
    """Return, by Service that policies ask, the Gateways of ours at which they do: BackendTLSPolicies are told of these, too."""
    found: dict[Key, set[Key]] = {}
    for key, outcome in own.outcomes.items():
        services = {(one.namespace, one.name) for one in outcome.clusters if one.kind == "service"}
        services.update((one[1], one[2]) for one in outcome.reads if one[0] == "Service")
        status = evaluated.of(key[0]).get(key[1:]) if services else None
        for entry in status.ancestors if status is not None else ():
            ref = entry.ancestor_ref
            gateway = (ref.namespace or key[1], ref.name)
            if ref.kind == "Gateway" and world.gateways.get(gateway) is not None:
                for service in services:  # a target that is not there is an ancestor, too
                    found.setdefault(service, set()).add(gateway)
    return found


def compute_edge_policy_statuses(
    own: EdgePolicies,
    routes: Routes,
    uses: PolicyUses,
    caches: FleetCaches,
    world: World,
    before: tuple[EdgePolicyStatuses, bool] | None,
    changed: Iterable[Fact] = (),
) -> EdgePolicyStatuses:
    """Return all statuses; `before`: those of the previous translation, and whether its Gateways are the very same; `changed`: facts since."""
    previous, same = before or (EdgePolicyStatuses(), False)
    unmade, others = find_skipped_checks(caches, previous.unmade)
    suspects = (
        find_suspects(own, routes, uses, others, changed)
        if same
        else {*own.outcomes, *_known(previous)}
    )
    if not suspects:
        return previous
    drafts = {kind: previous.of(kind).edit() for kind in KIND_OF.values()}
    reported = previous.told.edit()
    for key in sorted(suspects):
        outcome = own.outcomes.get(key)
        status, problems = (
            _evaluate(key, outcome, own, routes, uses, unmade, world) if outcome else (None, ())
        )
        table = drafts[key[0]]
        if status is None or is_made(key[2]):
            table.pop(key[1:], None)
        elif table.get(key[1:]) != status:
            table[key[1:]] = status
        if problems:
            reported[key] = problems
        else:
            reported.pop(key, None)
    by_kind = {kind: draft.done() for kind, draft in drafts.items()}
    return EdgePolicyStatuses(by_kind=by_kind, told=reported.done(), unmade=unmade)


def _known(previous: EdgePolicyStatuses) -> Iterator[OwnKey]:
    yield from ((kind, *key) for kind, table in previous.by_kind.items() for key in table)
    yield from previous.told


def _evaluate(
    key: OwnKey,
    outcome: EdgePolicyOutcome,
    own: EdgePolicies,
    routes: Routes,
    uses: PolicyUses,
    unmade: SkippedChecks,
    world: World,
) -> tuple[PolicyStatus | None, tuple[Problem, ...]]:
    name, shape = key[2].removesuffix(NEWER), outcome.shape
    ref = ObjectRef(key[0], key[1], name, GROUP_OF[key[0]])
    foreign = outcome.policy is None and name == key[2]  # diagnostics/unapplied_policy.py
    if foreign or not _is_watched(key[1], world):
        return None, ()
    targeted = _follow_targets(ref, outcome, own, routes, uses, world)
    if outcome.policy is None:
        closed = (report_closed(ref, path, target) for target, path in targeted.present)
        return None, (*targeted.problems, *closed)
    used = {at: _find_uses(shape, at, uses) for at in sorted(targeted.effects)}
    ahead = _says_ahead(outcome)
    lost = {at: _find_lost(shape, targeted.effects[at], used[at], ahead=ahead) for at in used}
    left = {at: _find_unmade(shape, at, unmade) for at in used}
    refused = [*outcome.refused, *targeted.problems]
    accepted = accepted_condition(outcome, refused, len(used))
    ancestors = [
        (
            ParentReference(namespace=at[0], name=at[1]),
            (
                *accepted,
                programmed_condition(
                    outcome, lost[at], used[at], refused, left[at], reached=at in targeted.reached
                ),
            ),
        )
        for at in used
    ]
    if not ancestors:  # nobody else would tell of a target that is not there
        ancestors = [(_name_target(one), accepted) for one in targeted.nowhere]
    entries = tuple(
        PolicyAncestorStatus(
            ancestor_ref=at,
            controller_name=world.settings.controller_name,
            conditions=conditions,
        )
        for at, conditions in ancestors[:MAX_ANCESTORS]
    )
    message = {
        one.message.partition(":")[0] for one in targeted.problems if one.reason == "Conflicted"
    }
    beaten = warn_lost(ref, lost.values())
    reported = (
        *targeted.problems,
        *report_closed_targets(ref, outcome, targeted.present),
        *report_uncovered(ref, outcome, used.values()),
        *report_skipped_checks(ref, left.values()),
        *(one for one in beaten if one.message.partition(":")[0] not in message),
    )
    return PolicyStatus(ancestors=entries) if entries else None, reported


class _Targeted(NamedTuple):
    """What the targets of one policy lead to."""

    effects: dict[Key, list[Effect]]  # by Gateway
    reached: set[Key]  # by a target that is there
    nowhere: list[Target]
    present: list[tuple[Target, str]]  # with the field path of each
    problems: list[Problem]


def _follow_targets(
    ref: ObjectRef,
    outcome: EdgePolicyOutcome,
    own: EdgePolicies,
    routes: Routes,
    uses: PolicyUses,
    world: World,
) -> _Targeted:
    found, shape = _Targeted({}, set(), [], [], []), outcome.shape
    kinds = Counter(path for _, path in {(target[0], path) for target, path in outcome.targets})
    for target, path in outcome.targets:
        if target[0] in BACKEND_TARGETS:
            at = (one for unit in shape.units for one in uses.gateways_of(shape.unit(unit)))
            place = find_backend_place(target, path, ref, world, at)
        else:
            place = find_place(target, path, ref, world, routes.outcomes)
        for gateway, there in place.gateways.items():
            found.effects.setdefault(gateway, []).extend(there)
        if place.missing is None:
            found.present.append((target, path))
            found.reached.update(place.gateways)
            level = own.attached.get(target, ())
            found.problems.extend(_find_conflicts(shape, level, ref, path))
        else:
            # A reference of an unknown kind names all kinds; those without such an object are not reported.
            if place.attached or kinds[path] == 1:
                found.problems.append(place.missing)
            if not place.gateways:
                found.nowhere.append(target)
    return found


def _name_target(target: Target) -> ParentReference:
    kind, namespace, name, _ = target
    return ParentReference(group=group_of_target(kind), kind=kind, namespace=namespace, name=name)


def _find_unmade(shape: PolicySummary, gateway: Key, unmade: SkippedChecks) -> tuple[str, ...]:
    return tuple(one for unit in shape.units for one in unmade.of(shape.unit(unit), gateway))


def _is_watched(namespace: str, world: World) -> bool:
    """Targets are of the policy's own namespace."""
    found = world.snapshot.namespaces.get(("", namespace))
    return world.settings.watches(namespace, found.metadata.labels if found else {})


def _find_conflicts(
    shape: PolicySummary, level: Level, ref: ObjectRef, path: str
) -> Iterator[Problem]:
    """Give a problem for each thing that an older policy of the kind says on the same target."""
    older = [one for one in level if one.family == shape.family and one.age < shape.age]
    for unit in shape.units:
        first = next((one for one in older if unit in one.units and _alike(one, shape)), None)
        if first is not None and unit != CLOSED:
            message = f"{unit}: {owner_of_unit(first.name)} has this target already"
            yield Problem(ref, path, "Conflicted", message)
    if older and shape.merge == "Replace" and older[0].merge != "Replace":
        message = f"mergeType Replace: {owner_of_unit(older[0].name)} has this target already"
        yield Problem(ref, path, "Conflicted", message)


def _alike(one: PolicySummary, other: PolicySummary) -> bool:
    """Tell whether one of the two has what both say: an Override is beaten by no default."""
    return (one.merge == "Override") == (other.merge == "Override")


def _find_uses(shape: PolicySummary, gateway: Key, uses: PolicyUses) -> dict[Unit, PolicyUse]:
    return {unit: uses.of(shape.unit(unit), gateway) for unit in shape.units}


def _says_ahead(outcome: EdgePolicyOutcome) -> bool:
    """Tell whether a policy says anything of requests before they have a backend; one that is closed answers them."""
    policy = outcome.policy
    return any(one.unit.status for one in outcome.units) or (
        isinstance(policy, BackendTrafficPolicy) and any(list_request_leaves(policy.spec))
    )


def _find_lost(
    shape: PolicySummary, effects: Iterable[Effect], used: Mapping[Unit, PolicyUse], *, ahead: bool
) -> dict[Unit, tuple[str, ...]]:
    """Return the units that hold nowhere below a Gateway, and the policies by which they are beaten: without routes, what listeners say.

    `ahead`: they say something of requests before these have a backend.
    """
    places = tuple(effects)
    found: dict[Unit, tuple[str, ...]] = {}
    for unit, use in used.items():
        name = shape.unit(unit)
        if use.holds or use.refused or (use.before and ahead):
            continue
        if use.lost:
            found[unit] = tuple(dict.fromkeys(map(owner_of_unit, use.lost)))
            continue
        by = dict.fromkeys(
            owner_of_unit(winner) for one in places for lost, winner in one.lost if lost == name
        )
        if by and not any(name in one.holds for one in places):
            found[unit] = tuple(by)
    return found
