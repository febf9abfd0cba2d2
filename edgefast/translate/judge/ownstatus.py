"""Statuses of SecurityPolicies and BackendTrafficPolicies: one entry per Gateway of ours that a target is, or is below.

In: the policies, what is attached to what, the outcomes of routes. Out: a PolicyStatus for each policy with an ancestor, and what is
wrong with their targets. Only policies are judged anew whose own object, neighbours on a target, routes or uses changed; all when Gateways did.
Conditions: Accepted; ResolvedRefs; Programmed, which is Overridden where a unit of the policy holds nowhere, and says by whom, and
NotSupported where routes of layer 4 are below it, or its check of a backend is one too many.
Source: GEP-713 (PolicyStatus: at most 16 ancestors; past them a policy is enforced all the same, and it is said).
Must never: list a Gateway of another controller, or differ from what is judged when there is no before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from edgefast.problem import ObjectRef, Problem
from edgefast.resources.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.resources.edge.policytarget import BACKEND_TARGETS, group_of_target
from edgefast.resources.model.reference import ParentReference
from edgefast.resources.rules.policytarget import list_request_leaves
from edgefast.resources.snapshot import Key
from edgefast.sortedmap import EMPTY, SortedMap
from edgefast.translate.facts.facts import Fact, World
from edgefast.translate.facts.policyshape import (
    CLOSED,
    GROUP_OF,
    KIND_OF,
    Level,
    PolicyShape,
    Target,
    Unit,
    owner_of_unit,
)
from edgefast.translate.fleet.shelf import Shelves
from edgefast.translate.judge.backendplace import find_backend_place
from edgefast.translate.judge.ownsuspect import find_suspects
from edgefast.translate.judge.owntarget import Effect, find_place
from edgefast.translate.judge.ownuse import OwnUse, OwnUses
from edgefast.translate.judge.ownwords import (
    judge_accepted,
    judge_programmed,
    tell_uncovered,
    tell_unmade,
    warn_lost,
)
from edgefast.translate.judge.policystatus import MAX_ANCESTORS
from edgefast.translate.judge.unmade import Unmade, find_unmade
from edgefast.translate.policy.closed import OwnKey
from edgefast.translate.policy.outcome import OwnOutcome
from edgefast.translate.policy.own import OwnPolicies
from edgefast.translate.route.routes import Routes
from edgefast.translate.status.status import PolicyAncestorStatus, PolicyStatus

__all__ = ["OwnStatuses", "find_asked", "judge_own_policies"]


class OwnStatuses(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all policies of our own, by kind, and what is told beside the mistakes of the objects."""

    by_kind: Mapping[str, SortedMap[Key, PolicyStatus]] = {}
    told: SortedMap[OwnKey, tuple[Problem, ...]] = EMPTY
    unmade: Unmade = Unmade()

    def of(self, kind: str) -> SortedMap[Key, PolicyStatus]:
        """Return those of a kind."""
        return self.by_kind.get(kind, EMPTY)

    def problems(self, own: OwnPolicies, *, standalone: bool) -> Iterator[Problem]:
        """Give the problems of all policies, or of those that have a status."""
        for key, outcome in own.outcomes.items():
            named = (key[1], key[2].partition("?")[0])  # a newer version has no status of its own
            if standalone or named in self.of(key[0]):
                yield from outcome.problems
                yield from self.told.get(key, ())


def find_asked(own: OwnPolicies, judged: OwnStatuses, world: World) -> dict[Key, set[Key]]:
    """Return, by Service that policies ask, the Gateways of ours at which they do: BackendTLSPolicies are told of these, too."""
    found: dict[Key, set[Key]] = {}
    for key, outcome in own.outcomes.items():
        services = {(one.namespace, one.name) for one in outcome.clusters if one.kind == "service"}
        services.update((one[1], one[2]) for one in outcome.reads if one[0] == "Service")
        status = judged.of(key[0]).get(key[1:]) if services else None
        for entry in status.ancestors if status is not None else ():
            ref = entry.ancestor_ref
            gateway = (ref.namespace or key[1], ref.name)
            if ref.kind == "Gateway" and world.gateways.get(gateway) is not None:
                for service in services:  # a target that is not there is an ancestor, too
                    found.setdefault(service, set()).add(gateway)
    return found


def judge_own_policies(
    own: OwnPolicies,
    routes: Routes,
    uses: OwnUses,
    shelves: Shelves,
    world: World,
    before: tuple[OwnStatuses, bool] | None,
    changed: Iterable[Fact] = (),
) -> OwnStatuses:
    """Return all statuses; `before`: those of the previous translation, and whether its Gateways are the very same; `changed`: facts since."""
    previous, same = before or (OwnStatuses(), False)
    unmade, others = find_unmade(shelves, previous.unmade)
    suspects = (
        find_suspects(own, routes, uses, others, changed)
        if same
        else {*own.outcomes, *_known(previous)}
    )
    if not suspects:
        return previous
    drafts = {kind: previous.of(kind).edit() for kind in KIND_OF.values()}
    told = previous.told.edit()
    for key in sorted(suspects):
        outcome = own.outcomes.get(key)
        status, problems = (
            _judge(key, outcome, own, routes, uses, unmade, world) if outcome else (None, ())
        )
        table = drafts[key[0]]
        if status is None:
            table.pop(key[1:], None)
        elif table.get(key[1:]) != status:
            table[key[1:]] = status
        if problems:
            told[key] = problems
        else:
            told.pop(key, None)
    by_kind = {kind: draft.done() for kind, draft in drafts.items()}
    return OwnStatuses(by_kind=by_kind, told=told.done(), unmade=unmade)


def _known(previous: OwnStatuses) -> Iterator[OwnKey]:
    yield from ((kind, *key) for kind, table in previous.by_kind.items() for key in table)
    yield from previous.told


def _judge(
    key: OwnKey,
    outcome: OwnOutcome,
    own: OwnPolicies,
    routes: Routes,
    uses: OwnUses,
    unmade: Unmade,
    world: World,
) -> tuple[PolicyStatus | None, tuple[Problem, ...]]:
    if outcome.policy is None or not _is_watched(key[1], world):
        return None, ()
    ref, shape = ObjectRef(*key, GROUP_OF[key[0]]), outcome.shape
    aimed = _follow_targets(ref, outcome, own, routes, uses, world)
    used = {at: _find_uses(shape, at, uses) for at in sorted(aimed.effects)}
    ahead = _says_ahead(outcome)
    lost = {at: _find_lost(shape, aimed.effects[at], used[at], ahead=ahead) for at in used}
    left = {at: _find_unmade(shape, at, unmade) for at in used}
    refused = [*outcome.refused, *aimed.problems]
    accepted = judge_accepted(outcome, refused, len(used))
    ancestors = [
        (
            ParentReference(namespace=at[0], name=at[1]),
            (
                *accepted,
                judge_programmed(
                    outcome, lost[at], used[at], refused, left[at], reached=at in aimed.reached
                ),
            ),
        )
        for at in used
    ]
    if not ancestors:  # nobody else would tell of a target that is not there
        ancestors = [(_name_target(one), accepted) for one in aimed.nowhere]
    entries = tuple(
        PolicyAncestorStatus(
            ancestor_ref=at,
            controller_name=world.settings.controller_name,
            conditions=conditions,
        )
        for at, conditions in ancestors[:MAX_ANCESTORS]
    )
    said = {one.message.partition(":")[0] for one in aimed.problems if one.reason == "Conflicted"}
    beaten = warn_lost(ref, lost.values())
    told = (
        *aimed.problems,
        *tell_uncovered(ref, outcome, used.values()),
        *tell_unmade(ref, left.values()),
        *(one for one in beaten if one.message.partition(":")[0] not in said),
    )
    return PolicyStatus(ancestors=entries) if entries else None, told


class _Aimed(NamedTuple):
    """What the targets of one policy lead to."""

    effects: dict[Key, list[Effect]]  # by Gateway
    reached: set[Key]  # by a target that is there
    nowhere: list[Target]
    problems: list[Problem]


def _follow_targets(
    ref: ObjectRef,
    outcome: OwnOutcome,
    own: OwnPolicies,
    routes: Routes,
    uses: OwnUses,
    world: World,
) -> _Aimed:
    found, shape = _Aimed({}, set(), [], []), outcome.shape
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
            found.reached.update(place.gateways)
            level = own.attached.get(target, ())
            found.problems.extend(_find_conflicts(shape, level, ref, path))
        else:
            # Of the kinds that a reference with a slip may name, those without such an object are not reported.
            if place.attached or kinds[path] == 1:
                found.problems.append(place.missing)
            if not place.gateways:
                found.nowhere.append(target)
    return found


def _name_target(target: Target) -> ParentReference:
    kind, namespace, name, _ = target
    return ParentReference(group=group_of_target(kind), kind=kind, namespace=namespace, name=name)


def _find_unmade(shape: PolicyShape, gateway: Key, unmade: Unmade) -> tuple[str, ...]:
    return tuple(one for unit in shape.units for one in unmade.of(shape.unit(unit), gateway))


def _is_watched(namespace: str, world: World) -> bool:
    """Targets are of the policy's own namespace."""
    found = world.snapshot.namespaces.get(("", namespace))
    return world.settings.watches(namespace, found.metadata.labels if found else {})


def _find_conflicts(
    shape: PolicyShape, level: Level, ref: ObjectRef, path: str
) -> Iterator[Problem]:
    """Give a problem for each thing that an older policy of the kind says on the same target."""
    older = [one for one in level if one.family == shape.family and one.age < shape.age]
    for unit in shape.units:
        first = next((one for one in older if unit in one.units and _alike(one, shape)), None)
        if first is not None and unit != CLOSED:
            said = f"{unit}: {owner_of_unit(first.name)} has this target already"
            yield Problem(ref, path, "Conflicted", said)
    if older and shape.merge == "Replace" and older[0].merge != "Replace":
        said = f"mergeType Replace: {owner_of_unit(older[0].name)} has this target already"
        yield Problem(ref, path, "Conflicted", said)


def _alike(one: PolicyShape, other: PolicyShape) -> bool:
    """Tell whether one of the two has what both say: an Override is beaten by no default."""
    return (one.merge == "Override") == (other.merge == "Override")


def _find_uses(shape: PolicyShape, gateway: Key, uses: OwnUses) -> dict[Unit, OwnUse]:
    return {unit: uses.of(shape.unit(unit), gateway) for unit in shape.units}


def _says_ahead(outcome: OwnOutcome) -> bool:
    """Tell whether a policy says anything of requests before they have a backend; one that is closed answers them."""
    policy = outcome.policy
    return any(one.unit.status for one in outcome.units) or (
        isinstance(policy, BackendTrafficPolicy) and any(list_request_leaves(policy.spec))
    )


def _find_lost(
    shape: PolicyShape, effects: Iterable[Effect], used: Mapping[Unit, OwnUse], *, ahead: bool
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
