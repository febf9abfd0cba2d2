"""Translation: the result of one run, and what the next run may reuse.

In: nothing. Out: the result types of `translate`. `memo` belongs to the next `translate` alone. It
never changes, so one translation may be the predecessor of several.
Must never: be compared by value; it holds the whole configuration.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import SortedMap
from edgefast.diagnostics.problem import Problem
from edgefast.ir import IR, Infra
from edgefast.translate.adoption.expand import Adoption
from edgefast.translate.backend.cluster import ClusterOutcome
from edgefast.translate.backend.pod_selectors import Selection, Selectors
from edgefast.translate.conditions.status import Statuses
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.deps.readers import Readers
from edgefast.translate.diagnostics.listener_isolation import Owned
from edgefast.translate.diagnostics.unreachable_rule import Reachability
from edgefast.translate.filter.listener_filter import ListenerFilters
from edgefast.translate.fleet.fleet_cache import FleetCaches
from edgefast.translate.fleet.frontend import Frontend
from edgefast.translate.ingress.expand import Expansion
from edgefast.translate.policy.backendtlspolicy import Policies
from edgefast.translate.policy.edge_policies import EdgePolicies
from edgefast.translate.rate_limit.limit_store import LimitStore
from edgefast.translate.route.outcome import RouteOutcome
from edgefast.translate.route.route_sums import RouteSums
from edgefast.translate.status.edge_policy import EdgePolicyStatuses
from edgefast.translate.status.ingress import IngressStatuses
from edgefast.translate.status.policy_usage import PolicyUses
from edgefast.translate.status.statuses import RouteStatuses
from edgefast.translate.status.xbackend import XBackendStatuses
from edgefast.translate.tls.keyring import Keyring
from edgefast.translate.virtual_host.layer4 import Streams
from edgefast.translate.virtual_host.virtual_host import Hosts


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """How much was done anew; the rest was taken over."""

    routes: int
    virtual_hosts: int
    streams: int = 0  # places of layer 4
    clusters: int
    policies: int = 0  # SecurityPolicies and BackendTrafficPolicies
    filters: int = 0  # of listeners

    def plus(self, other: Work) -> Work:
        """Return the sum of both."""
        pairs = ((name, getattr(self, name) + getattr(other, name)) for name in _WORK)
        return Work(**dict(pairs))


_WORK = Work.__struct_fields__


class Memo(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Outcomes of every stage, for the next translation."""

    adoption: Adoption
    expansion: Expansion
    world: World
    keyring: Keyring
    front: Frontend
    limit_store: LimitStore
    policies: Policies
    own: EdgePolicies
    filters: ListenerFilters
    judged: EdgePolicyStatuses
    uses: PolicyUses
    x_backends: XBackendStatuses
    selectors: Selectors
    users: tuple[object, ...]  # what statuses of BackendTLSPolicies are judged by
    routes: SortedMap[Key, RouteOutcome]
    route_readers: Readers[Key]
    sums: RouteSums
    clusters: SortedMap[ClusterRef, ClusterOutcome]
    cluster_uses: SortedMap[ClusterRef, int]
    cluster_notes: frozenset[ClusterRef]  # those with problems
    cluster_readers: Readers[ClusterRef]
    hosts: Hosts
    streams: Streams
    owned: Owned
    reach: Reachability
    route_statuses: RouteStatuses
    fleet_caches: FleetCaches
    ingresses: IngressStatuses


class StatusMemo:
    """The problems of a translation, put together when first asked for: a controller that nobody asks need not know them."""

    def __init__(self, find: Callable[[], tuple[Problem, ...]]) -> None:
        self._find: Callable[[], tuple[Problem, ...]] | None = find
        self._found: tuple[Problem, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All of them, in order. Two threads may ask at once; both find the same."""
        find = self._find
        if find is not None:
            self._found = find()
            self._find = None  # and let go of all that it looked at
        return self._found


class Translation(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything that follows from the objects."""

    ir: IR
    infra: tuple[Infra, ...]
    statuses: Statuses
    selections: frozenset[Selection] = frozenset()  # of the Pods that requests are sent to
    told: StatusMemo
    work: Work
    memo: Memo

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem, by object; with file and line where the object has them."""
        return self.told.problems

    def __repr__(self) -> str:
        fleets = ", ".join(fleet.name for fleet in self.ir.fleets)
        return f"Translation(fleets=[{fleets}], {self.work})"
