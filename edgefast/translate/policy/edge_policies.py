"""Edge policies: translates each SecurityPolicy and BackendTrafficPolicy when it, or a fact it read, changed.

In: the world, what is known of clusters, the previous outcomes, the changed facts.
Out: outcomes, units by name, and by target the summaries of the attached policies, oldest first.
Unchanged policies cost nothing; without policies there is no work.
Source: architecture decision 2; GEP-713.
Must never: differ from a result without previous outcomes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

import msgspec

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.xbackendtrafficpolicy import XBackendTrafficPolicy
from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap, find_unlike
from edgefast.translate.deps.cluster_ref import ClusterRef, ClusterState
from edgefast.translate.deps.dependency_facts import Fact, Reader, World, is_read
from edgefast.translate.deps.policy_summary import Level, PolicySummary, Target
from edgefast.translate.deps.readers import Readers, find_readers, follow
from edgefast.translate.policy.fail_closed import (
    OwnKey,
    close_newer,
    resolve_policy_targets,
    tables_of,
)
from edgefast.translate.policy.foreign_access_policy import close_foreign
from edgefast.translate.policy.outcome import Aims, EdgePolicyOutcome, OwnPolicy, UnitOutcome
from edgefast.translate.policy.retry_constraint import translate_constraint
from edgefast.translate.policy.security import translate_security
from edgefast.translate.policy.traffic import translate_traffic

__all__ = ["OwnChange", "EdgePolicies", "translate_edge_policies"]

OwnChange = tuple[EdgePolicyOutcome | None, EdgePolicyOutcome | None]


class EdgePolicies(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """All of them; never changed after it was made."""

    outcomes: SortedMap[OwnKey, EdgePolicyOutcome] = EMPTY
    readers: Readers[OwnKey] = EMPTY
    attached: SortedMap[Target, Level] = EMPTY
    units: SortedMap[str, UnitOutcome] = EMPTY
    closed: frozenset[OwnKey] = (
        frozenset()
    )  # those that stand for policies of other projects, or for newer versions with an error
    behind: frozenset[OwnKey] = frozenset()  # those that have a newer version with a mistake
    aimed: frozenset[OwnKey] = frozenset()  # those whose targets are not all of targetRefs
    changes: tuple[OwnChange, ...] = ()  # since the translation before
    touched: frozenset[str] = frozenset()  # units that differ from the translation before
    made: int = 0

    def settled(self) -> EdgePolicies:
        """Return the same without what has changed."""
        if not self.changes and not self.made:
            return self
        return msgspec.structs.replace(self, changes=(), touched=frozenset(), made=0)


def translate_edge_policies(
    world: World,
    states: Callable[[ClusterRef], ClusterState],
    previous: EdgePolicies,
    before: World | None,
    changed: set[Fact],
) -> EdgePolicies:
    """Translate what changed since `before`."""
    tables, settings = tables_of(world.snapshot), world.settings
    closed = dict(close_foreign(world.snapshot)) if settings.closes_foreign else {}
    suspects = find_readers(previous.readers, changed) if previous.outcomes else set()
    suspects |= previous.closed | closed.keys() | previous.aimed
    for kind, old in (
        tables_of(before.snapshot) if before else dict.fromkeys(tables, EMPTY)
    ).items():
        for unlike in find_unlike(old, tables[kind]):
            suspects.update((kind, *key) for key in unlike)
    behind = {
        key: policy
        for key in suspects | previous.behind
        if _is_behind(policy := tables[key[0]].get(key[1:]))
    }
    for policy in behind.values():
        stand_in = close_newer(policy, world.snapshot)
        if stand_in is not None:
            closed[stand_in[0]] = stand_in[1]
            suspects.add(stand_in[0])
    if not suspects:
        return previous.settled()
    outcomes, reading = previous.outcomes.edit(), previous.readers.edit()
    attached, units = previous.attached.edit(), previous.units.edit()
    changes: list[OwnChange] = []
    touched: set[str] = set()
    aiming: set[OwnKey] = set()
    made = 0
    for key in sorted(suspects):
        old_outcome, policy = previous.outcomes.get(key), tables[key[0]].get(key[1:])
        new: EdgePolicyOutcome | None = closed.get(key)
        if policy is not None:
            assert isinstance(policy, SecurityPolicy | BackendTrafficPolicy | XBackendTrafficPolicy)
            if policy.aimed:
                aiming.add(key)
            targeted = resolve_policy_targets(policy, world.snapshot)
            if (
                old_outcome is not None
                and old_outcome.policy is policy
                and old_outcome.aimed == targeted
                and not is_read(changed, old_outcome.reads)
            ):
                continue
            made += 1
            new = _translate(policy, targeted, Reader(world, states))
        if new is not None and old_outcome is not None:
            new = _keep(new, old_outcome)
        if new is old_outcome:
            continue
        if new is not None:
            outcomes[key] = new
        else:
            del outcomes[key]
        follow(reading, key, old_outcome.reads if old_outcome else (), new.reads if new else ())
        _attach(attached, old_outcome, new)
        touched |= _put_units(units, old_outcome, new)
        changes.append((old_outcome, new))
    return EdgePolicies(
        outcomes=outcomes.done(),
        readers=reading.done(),
        attached=attached.done(),
        units=units.done(),
        closed=frozenset(closed),
        behind=frozenset(behind),
        aimed=frozenset(aiming),
        changes=tuple(changes),
        touched=frozenset(touched),
        made=made,
    )


def _is_behind(policy: object) -> TypeGuard[OwnPolicy]:
    return (
        isinstance(policy, SecurityPolicy | BackendTrafficPolicy | XBackendTrafficPolicy)
        and policy.newer is not None
    )


def _translate(policy: OwnPolicy, targeted: Aims, reader: Reader) -> EdgePolicyOutcome:
    if isinstance(policy, SecurityPolicy):
        return translate_security(policy, targeted, reader)
    if isinstance(policy, XBackendTrafficPolicy):
        return translate_constraint(policy, targeted, reader)
    return translate_traffic(policy, targeted, reader)


def _keep(new: EdgePolicyOutcome, old: EdgePolicyOutcome) -> EdgePolicyOutcome:
    """Return the new outcome with what is equal in the old one; the old one where it stands for a file that did not change."""
    known = {one.unit.name: one for one in old.units}
    units = tuple(
        known[one.unit.name] if known.get(one.unit.name) == one else one for one in new.units
    )
    same = (new.shape, new.targets, units, new.problems) == (
        old.shape,
        old.targets,
        old.units,
        old.problems,
    )
    if new.policy is None and old.policy is None and same:
        return old
    return msgspec.structs.replace(new, units=units)


def _attach(
    attached: Draft[Target, Level], old: EdgePolicyOutcome | None, new: EdgePolicyOutcome | None
) -> None:
    gone = {target: old.shape for target, _ in old.targets} if old else {}
    come = {target: new.shape for target, _ in new.targets} if new else {}
    for target in gone.keys() | come.keys():
        before, after = gone.get(target), come.get(target)
        if before == after:
            continue
        there = [one for one in attached.get(target, ()) if one != before]
        if after is not None:
            there.append(after)
        if there:
            attached[target] = tuple(sorted(there, key=_order))
        else:
            del attached[target]


def _order(shape: PolicySummary) -> tuple[object, ...]:
    return (*shape.age, shape.family)


def _put_units(
    units: Draft[str, UnitOutcome], old: EdgePolicyOutcome | None, new: EdgePolicyOutcome | None
) -> set[str]:
    """Return the names of those that differ."""
    gone = {one.unit.name: one for one in old.units} if old else {}
    come = {one.unit.name: one for one in new.units} if new else {}
    touched = {name for name in gone.keys() | come.keys() if gone.get(name) is not come.get(name)}
    for name in touched:
        if name in come:
            units[name] = come[name]
        else:
            del units[name]
    return touched
