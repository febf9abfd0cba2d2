"""Translation: all that one run gives, and what the next run may take over.

In: nothing. Out: the result types of `translate`.
`memo` belongs to the next `translate` alone; it is never changed after it was made, so one
translation may be the predecessor of several.
Must never: be compared by value; it holds the whole configuration.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgefast.ir import IR, Infra
from edgefast.problem import Problem
from edgefast.resources.snapshot import Key
from edgefast.translate.cluster import ClusterOutcome
from edgefast.translate.clusterref import ClusterRef
from edgefast.translate.facts import World
from edgefast.translate.keyring import Keyring
from edgefast.translate.limitstore import LimitStore
from edgefast.translate.policy import Policies
from edgefast.translate.route import RouteOutcome
from edgefast.translate.routesums import RouteSums
from edgefast.translate.shelf import Shelves
from edgefast.translate.status import Statuses
from edgefast.translate.virtualhost import Hosts


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """How much was done anew; the rest was taken over."""

    routes: int
    virtual_hosts: int
    clusters: int


class Memo(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Outcomes of every stage, for the next translation."""

    world: World
    keyring: Keyring
    limit_store: LimitStore
    policies: Policies
    routes: Mapping[Key, RouteOutcome]
    sums: RouteSums
    clusters: Mapping[ClusterRef, ClusterOutcome]
    cluster_uses: Mapping[ClusterRef, int]
    cluster_notes: frozenset[ClusterRef]  # those with problems
    hosts: Hosts
    shelves: Shelves


class Translation(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything that follows from the objects."""

    ir: IR
    infra: tuple[Infra, ...]
    statuses: Statuses
    problems: tuple[Problem, ...]  # by object; with file and line where the object has them
    work: Work
    memo: Memo

    def __repr__(self) -> str:
        fleets = ", ".join(fleet.name for fleet in self.ir.fleets)
        return f"Translation(fleets=[{fleets}], problems={len(self.problems)}, {self.work})"
