"""Backend policies: the treatments that the rules of a fleet give a cluster (ir.Cluster.treatments).

In: how many hosts use each treatment of the cluster, the units with a health check. Out: the
treatments of one cluster. A cluster names up to TREATMENTS_MOST of them whole, whatever their
policies contain; an edit of such a policy then changes only the policy. Of more it names only what
checks need, so that no cluster grows with the policies of its routes. A cluster with more than
ir.CHECKS_MOST different checks makes those of overrides, then those of the oldest policies.
Must never: depend on what came before.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import islice, takewhile

import msgspec

from edgefast import ir
from edgefast.collections.sorted_map import SortedMap
from edgefast.translate.policy.outcome import UnitOutcome
from edgefast.translate.virtual_host.virtual_host import BackendPolicy

__all__ = ["TREATMENTS_MOST", "BackendPolicies", "Ways", "list_backend_policies"]

#: Ways of one cluster that are named whole: some kB of names.
TREATMENTS_MOST = 64

#: As ir.Cluster.treatments.
Ways = tuple[tuple[int, tuple[str, ...]], ...]


class BackendPolicies(msgspec.Struct, frozen=True, gc=False):
    """The ways of one cluster, and on what they depend besides the hosts."""

    ways: Ways
    crowded: bool = False  # on which units have checks
    varied: bool = False  # on what these say, and whose they are, once there are many
    unmade: tuple[str, ...] = ()  # units whose check of it is not made


def list_backend_policies(
    cluster: str,
    treated: SortedMap[BackendPolicy, int],
    checking: AbstractSet[str],
    units: Mapping[str, UnitOutcome],
) -> BackendPolicies:
    """Return the ways of a cluster; `units` has those that are `checking`."""
    own = takewhile(lambda one: one[0] == cluster, treated.starting_at((cluster, 0, ())))
    ways = tuple((ceilings, traffic) for _, ceilings, traffic in islice(own, TREATMENTS_MOST + 1))
    varied = len(ways) > ir.CHECKS_MOST
    if len(ways) <= TREATMENTS_MOST:
        found = BackendPolicies(ways, varied=varied)
        return _rank(found, checking, units) if varied and _are_many(checking) else found
    if not checking:
        return BackendPolicies((), crowded=True, varied=True)
    some = set()
    own = takewhile(lambda one: one[0] == cluster, treated.starting_at((cluster, 0, ())))
    for _, ceilings, traffic in own:
        at = next((at for at, unit in enumerate(traffic) if unit in checking), None)
        if at is not None:
            some.add((int(at < ceilings), (traffic[at],)))
    found = BackendPolicies(tuple(sorted(some)), crowded=True, varied=True)
    if not _are_many(checking):
        return found
    ranked = _rank(found, checking, units)
    left = frozenset(ranked.unmade)
    return msgspec.structs.replace(
        ranked, ways=tuple(one for one in ranked.ways if one[1][0] not in left)
    )


def _are_many(checking: AbstractSet[str]) -> bool:
    return len(checking) > ir.CHECKS_MOST


def _rank(
    found: BackendPolicies, checking: AbstractSet[str], units: Mapping[str, UnitOutcome]
) -> BackendPolicies:
    """Return the same with the ways in the order of their checks, where not all of these are made."""
    first = [next((unit for unit in units_ if unit in checking), "") for _, units_ in found.ways]
    requested = sorted({one for one in first if one}, key=lambda one: (units[one].rank, one))
    checks: dict[ir.HealthCheck | None, int] = {}
    place = {"": len(requested)}  # of a way without a check: behind all others
    for unit in requested:
        place[unit] = checks.setdefault(_check_of(units[unit]), len(checks))
    unmade = tuple(unit for unit in requested if place[unit] >= ir.CHECKS_MOST)
    if not unmade:
        return found
    order = sorted(range(len(first)), key=lambda at: place[first[at]])
    ways = tuple(found.ways[at] for at in order)
    return msgspec.structs.replace(found, ways=ways, unmade=unmade)


def _check_of(one: UnitOutcome) -> ir.HealthCheck | None:
    return one.unit.traffic.check if one.unit.traffic is not None else None
