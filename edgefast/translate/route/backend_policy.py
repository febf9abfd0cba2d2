"""Backend policy: the policies at Services and Backends that apply to the backends of one rule.

In: a rule, the levels above its backends, the levels of each backend (it, then its port).
Out: the rule; each of its shares has the effective policies where they differ from the rule's. A
closed policy at a backend closes only the shares of that backend.
Must never: look at the content of a unit, or change what is decided before a request has a backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from edgefast import ir
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.policy_summary import CLOSED, Level
from edgefast.translate.policy.merge import merge_levels

__all__ = ["Below", "find_below", "apply_backend_policies"]

#: Levels of backends, by the name of the cluster; those without policies are left out.
Below = Mapping[str, tuple[Level, ...]]

_NOTHING: Below = {}


def find_below(clusters: Iterable[ClusterRef], reader: Reader) -> Below:
    """Return the levels of the backends among these."""
    if not reader.anything_attached():
        return _NOTHING
    return {reader.name_of(one): levels for one in clusters if (levels := reader.below(one))}


def apply_backend_policies(rule: ir.Rule, levels: tuple[Level, ...], below: Below) -> ir.Rule:
    """Return a rule that is below `levels`, whose units it names already."""
    shares = tuple(_treat(one, rule, levels, below) for one in rule.backends)
    if all(one is other for one, other in zip(shares, rule.backends, strict=True)):
        return rule
    return msgspec.structs.replace(rule, backends=shares)


def _treat(
    share: ir.BackendRef, rule: ir.Rule, levels: tuple[Level, ...], below: Below
) -> ir.BackendRef:
    own = below.get(share.cluster) if share.cluster else None
    if own is None:
        return share
    made = merge_levels((*levels, *own))
    closed = tuple(
        one for one in made.policies if one.endswith(f"#{CLOSED}") and one not in rule.policies
    )
    backend_policy = ir.BackendPolicy(
        traffic=(*closed, *made.traffic),
        ceilings=len(closed) + made.ceilings,
        lost=tuple(one for one in made.lost if one not in rule.lost),
    )
    if backend_policy == ir.BackendPolicy(traffic=rule.traffic, ceilings=rule.ceilings):
        return share
    return msgspec.structs.replace(share, treatment=backend_policy)
