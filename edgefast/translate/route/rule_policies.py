"""Rule policies: the effective policy units of the rules of one route.

In: a part of a route, the levels that its listeners pass on, the route's own, those of its backends
(backend_policy.py).
Out: the part; its rules name the units that apply to them (policy/merge.py). A rule that answers
500 anyway needs none.
Must never: look at the content of a unit, or give a rule other units than merging gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from edgefast import ir
from edgefast.api.gateway.grpcroute import Route
from edgefast.translate.deps.policy_summary import Level
from edgefast.translate.policy.merge import merge_levels
from edgefast.translate.route.backend_policy import Below, apply_backend_policies
from edgefast.translate.route.outcome import RoutePart

__all__ = ["apply_rule_policies"]


def apply_rule_policies(
    part: RoutePart,
    route: Route,
    inherited: tuple[Level, ...],
    own: Mapping[str, Level],
    below: Below,
) -> RoutePart:
    """Return a part with the policies that hold at listeners which pass `inherited` on; `own`: by the names of rules, `below`: of backends."""
    names = [one.name or "" for one in route.spec.rules]
    rules = tuple(
        _guard(one, _levels(names, one.index, inherited, own), below) for one in part.rules
    )
    return msgspec.structs.replace(part, rules=rules)


def _levels(
    names: Sequence[str], index: int, inherited: tuple[Level, ...], own: Mapping[str, Level]
) -> tuple[Level, ...]:
    """Return all levels of a rule; of several rules of one name the policies of that name are for each."""
    if not own:
        return inherited
    route, name = own.get(""), names[index]
    rule = own.get(name) if name else None
    return (*inherited, *(one for one in (route, rule) if one))


def _guard(rule: ir.Rule, levels: tuple[Level, ...], below: Below) -> ir.Rule:
    if rule.status or not (levels or below):
        return rule
    if levels:
        made = merge_levels(levels)
        rule = msgspec.structs.replace(
            rule,
            policies=made.policies,
            traffic=made.traffic,
            ceilings=made.ceilings,
            lost=made.lost,
        )
    return apply_backend_policies(rule, levels, below) if below else rule
