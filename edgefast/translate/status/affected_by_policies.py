"""Affected by policies: the conditions of Gateways and listeners that name their attached policies.

In: the attached policies, a place. Out: a condition for each policy kind with an effective unit
there: True, with the names. Without such a unit there is no condition, so that it goes with the
last policy.
Source: GEP-713 (target object status). Routes have none: an edit of one policy would write the
statuses of thousands.
Must never: name a policy that loses at this very place, or above it.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.api.kinds import EDGE_GROUP
from edgefast.translate.conditions.condition import Condition, holds
from edgefast.translate.deps.policy_summary import KIND_OF, Level, PolicySummary, Target
from edgefast.translate.policy.merge import merge_levels

__all__ = ["AFFECTED", "Attached", "report_affected"]

#: What is attached, by target.
Attached = Mapping[Target, Level]
#: Types of the conditions, by kind of policy.
AFFECTED = {
    kind: f"{EDGE_GROUP}/{kind}Affected"
    for kind in KIND_OF.values()
    if kind != "XBackendTrafficPolicy"
}

_NAMED = 8


def report_affected(
    attached: Attached, above: tuple[Target, ...], places: tuple[Target, ...], generation: int
) -> tuple[Condition, ...]:
    """Return the conditions of a place that is named by `places`, below others, outermost first."""
    there = [attached.get(one, ()) for one in places] if attached else []
    if not any(there):
        return ()
    levels = (*(attached.get(one, ()) for one in above), *there)
    made = merge_levels(tuple(level for level in levels if level))
    held = {one.partition("#")[0] for one in (*made.policies, *made.traffic)}
    found = []
    for family, kind in KIND_OF.items():
        if kind not in AFFECTED:
            continue
        shapes = [one for level in there for one in level if one.family == family]
        names = list(dict.fromkeys(_plain(one) for one in shapes if one.name in held))
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            message = f"Affected by {kind} {', '.join(names[:_NAMED])}{more}"
            found.append(holds(AFFECTED[kind], "PolicyAffected", message, generation))
    return tuple(found)


def _plain(shape: PolicySummary) -> str:
    """Return a policy's name, without what tells those apart that only keep targets closed."""
    return shape.owner.partition("?")[0]
