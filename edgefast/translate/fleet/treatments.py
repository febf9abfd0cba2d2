"""Treatments: in which ways the rules of a fleet treat a cluster, as the cluster names them (ir.Cluster.treatments).

In: how often hosts treat clusters so, the units with a check. Out: the ways of one cluster. Up to TREATMENTS_MOST are named whole, whatever
their policies say: what they say is then an edit of theirs alone. Of more only what checks need is named, so that no cluster grows with the
policies of its routes.
Must never: depend on what came before.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import islice, takewhile

from edgefast.sortedmap import SortedMap
from edgefast.translate.virtualhost.virtualhost import Treatment

__all__ = ["TREATMENTS_MOST", "Ways", "list_ways"]

#: Ways of one cluster that are named whole: some kB of names.
TREATMENTS_MOST = 64

#: As ir.Cluster.treatments.
Ways = tuple[tuple[int, tuple[str, ...]], ...]


def list_ways(
    cluster: str, treated: SortedMap[Treatment, int], checking: AbstractSet[str]
) -> tuple[Ways, bool]:
    """Return the ways of a cluster, and whether they are crowded: others as soon as other units have checks."""
    own = takewhile(lambda one: one[0] == cluster, treated.starting_at((cluster, 0, ())))
    ways = tuple((ceilings, traffic) for _, ceilings, traffic in islice(own, TREATMENTS_MOST + 1))
    if len(ways) <= TREATMENTS_MOST:
        return ways, False
    if not checking:
        return (), True
    found = set()
    own = takewhile(lambda one: one[0] == cluster, treated.starting_at((cluster, 0, ())))
    for _, ceilings, traffic in own:
        at = next((at for at, unit in enumerate(traffic) if unit in checking), None)
        if at is not None:
            found.add((int(at < ceilings), (traffic[at],)))
    return tuple(sorted(found)), True
