"""Statuses of SecurityPolicies and BackendTrafficPolicies: one entry per Gateway of ours that a target is, or is below.

In: the policies, what is attached to what, the outcomes of routes. Out: a PolicyStatus for each policy with an ancestor, and what is
wrong with their targets. Only policies are judged anew whose own object, neighbours on a target, routes or uses changed; all when Gateways did.
Conditions: Accepted; ResolvedRefs; Programmed, which is Overridden where a unit of the policy holds nowhere, and says by whom, and
NotSupported where routes of layer 4 are below it.
Source: GEP-713 (PolicyStatus: at most 16 ancestors; past them a policy is enforced all the same, and it is said).
Must never: list a Gateway of another controller, or differ from what is judged when there is no before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
from edgefast.translate.judge.backendplace import find_backend_place
from edgefast.translate.judge.ownsuspect import find_suspects
from edgefast.translate.judge.owntarget import Effect, find_place
from edgefast.translate.judge.ownuse import OwnUse, OwnUses
from edgefast.translate.judge.policystatus import MAX_ANCESTORS
from edgefast.translate.policy.closed import OwnKey
from edgefast.translate.policy.outcome import OwnOutcome
from edgefast.translate.policy.own import OwnPolicies
from edgefast.translate.route.routes import Routes
from edgefast.translate.status.condition import Condition, fails, holds, judge, render_problems
from edgefast.translate.status.status import PolicyAncestorStatus, PolicyStatus

__all__ = ["OwnStatuses", "find_asked", "judge_own_policies"]

_NAMED = 3  # policies, or routes, that a message names
_FRONTS = ("Gateway", "ListenerSet")
_FIELDS: dict[Unit, str] = {
    "authorization": "spec.authorization",
    "apiKeyAuth": "spec.apiKeyAuth",
    "basicAuth": "spec.basicAuth",
    "jwt": "spec.jwt",
    "extAuth": "spec.extAuth",
}


class OwnStatuses(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all policies of our own, by kind, and what is told beside the mistakes of the objects."""

    by_kind: Mapping[str, SortedMap[Key, PolicyStatus]] = {}
    told: SortedMap[OwnKey, tuple[Problem, ...]] = EMPTY

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


def find_asked(own: OwnPolicies, judged: OwnStatuses) -> dict[Key, set[Key]]:
    """Return, by Service that policies ask, the Gateways at which they do: BackendTLSPolicies are told of these, too."""
    found: dict[Key, set[Key]] = {}
    for key, outcome in own.outcomes.items():
        services = {(one.namespace, one.name) for one in outcome.clusters if one.kind == "service"}
        services.update((one[1], one[2]) for one in outcome.reads if one[0] == "Service")
        status = judged.of(key[0]).get(key[1:]) if services else None
        for entry in status.ancestors if status is not None else ():
            ref = entry.ancestor_ref
            if ref.kind == "Gateway":
                for service in services:
                    found.setdefault(service, set()).add((ref.namespace or key[1], ref.name))
    return found


def judge_own_policies(
    own: OwnPolicies,
    routes: Routes,
    uses: OwnUses,
    world: World,
    before: tuple[OwnStatuses, bool] | None,
    changed: Iterable[Fact] = (),
) -> OwnStatuses:
    """Return all statuses; `before`: those of the previous translation, and whether its Gateways are the very same; `changed`: facts since."""
    previous, same = before or (OwnStatuses(), False)
    suspects = (
        find_suspects(own, routes, uses, changed) if same else {*own.outcomes, *_known(previous)}
    )
    if not suspects:
        return previous
    drafts = {kind: previous.of(kind).edit() for kind in KIND_OF.values()}
    told = previous.told.edit()
    for key in sorted(suspects):
        outcome = own.outcomes.get(key)
        status, problems = _judge(key, outcome, own, routes, uses, world) if outcome else (None, ())
        table = drafts[key[0]]
        if status is None:
            table.pop(key[1:], None)
        elif table.get(key[1:]) != status:
            table[key[1:]] = status
        if problems:
            told[key] = problems
        else:
            told.pop(key, None)
    return OwnStatuses(
        by_kind={kind: draft.done() for kind, draft in drafts.items()}, told=told.done()
    )


def _known(previous: OwnStatuses) -> Iterator[OwnKey]:
    yield from ((kind, *key) for kind, table in previous.by_kind.items() for key in table)
    yield from previous.told


def _judge(
    key: OwnKey,
    outcome: OwnOutcome,
    own: OwnPolicies,
    routes: Routes,
    uses: OwnUses,
    world: World,
) -> tuple[PolicyStatus | None, tuple[Problem, ...]]:
    if outcome.policy is None or not _is_watched(key[1], world):
        return None, ()
    ref = ObjectRef(*key, GROUP_OF[key[0]])
    found: list[Problem] = []
    effects: dict[Key, list[Effect]] = {}
    reached: set[Key] = set()  # by a target that is there
    nowhere: list[Target] = []
    for target, path in outcome.targets:
        if target[0] in BACKEND_TARGETS:
            at = (
                one
                for unit in outcome.shape.units
                for one in uses.gateways_of(outcome.shape.unit(unit))
            )
            place = find_backend_place(target, path, ref, world, at)
        else:
            place = find_place(target, path, ref, world, routes.outcomes)
        for gateway, there in place.gateways.items():
            effects.setdefault(gateway, []).extend(there)
        if place.missing is None:
            reached.update(place.gateways)
            level = own.attached.get(target, ())
            found += _find_conflicts(outcome.shape, level, ref, path)
        else:
            found.append(place.missing)
            if not place.gateways:
                nowhere.append(target)
    refused = [*outcome.refused, *found]
    used = {at: _find_uses(outcome.shape, at, uses) for at in sorted(effects)}
    ahead = _says_ahead(outcome)
    lost = {at: _find_lost(outcome.shape, effects[at], used[at], ahead=ahead) for at in used}
    found += _tell_uncovered(ref, outcome, used.values())
    accepted = _accepted(outcome, refused, len(lost))
    ancestors = [
        (
            ParentReference(namespace=gateway[0], name=gateway[1]),
            (
                *accepted,
                _programmed(outcome, beaten, used[gateway], refused, reached=gateway in reached),
            ),
        )
        for gateway, beaten in lost.items()
    ]
    if not ancestors:  # nobody else would tell of a target that is not there
        ancestors = [
            (
                ParentReference(
                    group=group_of_target(kind),
                    kind=kind,
                    namespace=namespace,
                    name=name,
                ),
                accepted,
            )
            for kind, namespace, name, _ in nowhere
        ]
    entries = tuple(
        PolicyAncestorStatus(
            ancestor_ref=at,
            controller_name=world.settings.controller_name,
            conditions=conditions,
        )
        for at, conditions in ancestors[:MAX_ANCESTORS]
    )
    said = {one.message.partition(":")[0] for one in found if one.reason == "Conflicted"}
    beaten = _warn_lost(ref, lost.values())
    told = (*found, *(one for one in beaten if one.message.partition(":")[0] not in said))
    return PolicyStatus(ancestors=entries) if entries else None, told


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


def _accepted(outcome: OwnOutcome, refused: list[Problem], gateways: int) -> tuple[Condition, ...]:
    generation = _generation(outcome)
    said = "Policy is accepted"
    if gateways > MAX_ANCESTORS:
        said += (
            f"; it holds at all of its {gateways} Gateways, "
            f"{MAX_ANCESTORS} of which a status has room for"
        )
    unresolved = outcome.unresolved
    resolved = judge(
        "ResolvedRefs",
        unresolved,
        generation,
        reason="ResolvedRefs",
        message="All references are resolved",
    )
    return (
        judge("Accepted", refused, generation, reason="Accepted", message=said),
        resolved,
    )


def _programmed(
    outcome: OwnOutcome,
    lost: Mapping[Unit, tuple[str, ...]],
    used: Mapping[Unit, OwnUse],
    refused: Iterable[Problem],
    *,
    reached: bool,
) -> Condition:
    """Say whether what the policy says is what requests meet at a Gateway."""
    generation = _generation(outcome)
    if not reached:
        missing = [one for one in refused if (one.condition or one.reason) == "TargetNotFound"]
        return fails("Programmed", "TargetNotFound", render_problems(missing), generation)
    if lost:
        said = "; ".join(_tell(unit, by) for unit, by in lost.items())
        return fails("Programmed", "Overridden", said, generation)
    broken = [one.unit.reason for one in outcome.units if one.unit.status]
    if broken:
        said = f"requests are answered 500: {'; '.join(broken)}"
        return fails("Programmed", "Invalid", said, generation)
    if uncovered := _routes_of(one.refused for one in used.values()):
        return fails("Programmed", "NotSupported", _tell_refused(uncovered), generation)
    assert outcome.policy is not None
    newer = outcome.policy.newer
    said = f"Policy is programmed{f': {newer.said}' if newer is not None else ''}"
    return holds("Programmed", "Programmed", said, generation)


def _generation(outcome: OwnOutcome) -> int:
    """Return the version that conditions are about: the newest there is, in force or not."""
    assert outcome.policy is not None
    newer = outcome.policy.newer
    return newer.generation if newer is not None else outcome.policy.metadata.generation


def _tell(unit: Unit, by: tuple[str, ...]) -> str:
    more = f" and {len(by) - _NAMED} more" if len(by) > _NAMED else ""
    return f"{unit}: {', '.join(by[:_NAMED])}{more} holds in its place"


def _routes_of(named: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({one for routes in named for one in routes}))


def _named(routes: tuple[str, ...]) -> str:
    more = f" and {len(routes) - _NAMED} more" if len(routes) > _NAMED else ""
    return f"{', '.join(routes[:_NAMED])}{more}"


def _tell_refused(routes: tuple[str, ...]) -> str:
    return f"{_named(routes)}: policies cannot hold for routes of layer 4 yet, so what comes to it is refused"


def _tell_uncovered(
    ref: ObjectRef, outcome: OwnOutcome, used: Iterable[Mapping[Unit, OwnUse]]
) -> Iterator[Problem]:
    """Tell of routes of layer 4 that are closed because of a policy, and of those for which it says nothing."""
    places = tuple(one for by_unit in used for one in by_unit.values())
    path = next((path for target, path in outcome.targets if target[0] in _FRONTS), "spec")
    # Of those that it names itself its targetRefs tell.
    own = {f"{kind} {space}/{name}" for (kind, space, name, _), _ in outcome.targets}
    refused = tuple(one for one in _routes_of(one.refused for one in places) if one not in own)
    if refused:
        hint = "put routes of layer 4 on a Gateway without policies"
        yield Problem(ref, path, "NotSupported", _tell_refused(refused), hint)
    if unsaid := _routes_of(one.unsaid for one in places):
        said = f"{_named(unsaid)}: it says nothing to routes of layer 4"
        yield Problem(ref, path, "NotSupported", said, severity="warning")


def _warn_lost(ref: ObjectRef, lost: Iterable[Mapping[Unit, tuple[str, ...]]]) -> Iterator[Problem]:
    """Tell of units that hold at none of their Gateways."""
    places = tuple(lost)
    for unit in places[0] if places else ():
        if all(unit in one for one in places):
            by = tuple(dict.fromkeys(name for one in places for name in one[unit]))
            path = _FIELDS.get(unit, "spec")
            yield Problem(ref, path, "Overridden", _tell(unit, by), severity="warning")
