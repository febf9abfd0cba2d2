"""XBackend: statuses of XBackends, one entry per Gateway with routes, policies or listener filters that name one.

In: the clusters of XBackends, and their users. Out: the selectors of the used ones, and statuses in
the terms of the installed CRDs. A broken XBackend has the same entries. v1.6 calls the entries
parents, v1.7 ancestors. It updates only those with a changed cluster or changed users.
Source: Gateway API XBackend status (Accepted; at most 32 entries). ResolvedRefs is there only while
Pods cannot be read.
Must never: list a Gateway of another controller, or differ from a result without a previous one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from edgefast.api.gateway.xbackend import XBackend
from edgefast.api.model.reference import ParentReference
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap, find_unlike
from edgefast.diagnostics.problem import Problem
from edgefast.translate.backend.cluster import ClusterOutcome, Clusters
from edgefast.translate.backend.pod_selectors import RequestedSelector
from edgefast.translate.conditions.condition import Condition, fails, holds, render_problems
from edgefast.translate.conditions.status import (
    PolicyAncestorStatus,
    PolicyStatus,
    RouteParentStatus,
    RouteStatus,
)
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.filter.listener_filter import ListenerFilters
from edgefast.translate.match.precedence import age_order
from edgefast.translate.policy.edge_policies import EdgePolicies
from edgefast.translate.policy.fail_closed import OwnKey
from edgefast.translate.route.route_sums import RouteSums
from edgefast.translate.status.edge_policy import EdgePolicyStatuses

__all__ = ["XBackendStatuses", "compute_xbackend_statuses"]

#: maxItems of the entries.
MAX_ENTRIES = 32
#: The release whose status has other words.
_OLDER = "v1.6."

XBackendStatus = PolicyStatus | RouteStatus


class XBackendStatuses(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Those of all XBackends that are used, and by whom."""

    statuses: SortedMap[Key, XBackendStatus] = EMPTY
    wishes: SortedMap[Key, RequestedSelector] = EMPTY  # of those that select Pods
    users: SortedMap[tuple[Key, Key], int] = EMPTY  # by routes
    asked: Mapping[Key, frozenset[Key]] = {}  # by policies and filters


def compute_xbackend_statuses(
    clusters: Clusters,
    sums: RouteSums,
    own: EdgePolicies,
    evaluated: EdgePolicyStatuses,
    filters: ListenerFilters,
    world: World,
    previous: XBackendStatuses,
) -> XBackendStatuses:
    """Return all statuses."""
    requested = _find_asked(own, evaluated, filters, world)
    suspects = {(ref.namespace, ref.name) for ref in clusters.touched if ref.kind == "xbackend"}
    if sums.x_users is not previous.users:
        for unlike in find_unlike(previous.users, sums.x_users):
            suspects.update(backend for backend, _ in unlike)
    for key in requested.keys() | previous.asked.keys():
        if requested.get(key) != previous.asked.get(key):
            suspects.add(key)
    if not suspects and sums.x_users is previous.users:
        return previous
    statuses, wishes = previous.statuses.edit(), previous.wishes.edit()
    for key in sorted(suspects):
        gateways = sorted({*sums.x_users_of(key), *requested.get(key, ())})
        backend = world.snapshot.x_backends.get(key)
        if backend is None or not gateways:
            statuses.pop(key, None)
            wishes.pop(key, None)
            continue
        outcomes = tuple(_outcomes_of(key, clusters))
        conditions = _evaluate(_problems_of(outcomes), backend.metadata.generation)
        status = _shape(conditions, gateways[:MAX_ENTRIES], world)
        if statuses.get(key) != status:
            statuses[key] = status
        _note_wish(wishes, key, backend, outcomes)
    return XBackendStatuses(
        statuses=statuses.done(), wishes=wishes.done(), users=sums.x_users, asked=requested
    )


def _note_wish(
    wishes: Draft[Key, RequestedSelector],
    key: Key,
    backend: XBackend,
    outcomes: Iterable[ClusterOutcome],
) -> None:
    selects = next((one.selects for one in outcomes if one.selects), "")
    requested = RequestedSelector(age_order(backend.metadata), selects)
    if not selects:
        wishes.pop(key, None)
    elif wishes.get(key) != requested:
        wishes[key] = requested


def _find_asked(
    own: EdgePolicies, evaluated: EdgePolicyStatuses, filters: ListenerFilters, world: World
) -> dict[Key, frozenset[Key]]:
    """Return the Gateways at which policies and listener filters ask an XBackend."""
    found: dict[Key, set[Key]] = {}
    for key in _find_asking(own):
        backends = _backends_of(own.outcomes[key].clusters)
        status = evaluated.of(key[0]).get(key[1:])
        for entry in status.ancestors if status is not None else ():
            ref = entry.ancestor_ref
            gateway = (ref.namespace or key[1], ref.name)
            if ref.kind == "Gateway" and world.gateways.get(gateway) is not None:
                for backend in backends:  # a target that is not there is an ancestor, too
                    found.setdefault(backend, set()).add(gateway)
    for one in filters.outcomes.values():
        for backend in _backends_of(one.clusters):
            found.setdefault(backend, set()).add(one.gateway)
    return {key: frozenset(gateways) for key, gateways in found.items()}


def _find_asking(own: EdgePolicies) -> set[OwnKey]:
    """Return the policies that have looked at clusters of XBackends: most there are look at none, and are not gone through."""
    found: set[OwnKey] = set()
    for fact, key in own.readers.starting_at((("xbackend",),)):
        if fact[0] != "xbackend":
            break
        found.add(key)
    return found


def _backends_of(clusters: Iterable[ClusterRef]) -> set[Key]:
    return {(one.namespace, one.name) for one in clusters if one.kind == "xbackend"}


def _outcomes_of(key: Key, clusters: Clusters) -> Iterator[ClusterOutcome]:
    """Give what an XBackend came to, by what is spoken to it."""
    outcomes, begin = clusters.outcomes, ("xbackend", *key)
    for ref in outcomes.starting_at(begin):
        if ref[:3] != begin:
            return
        yield outcomes[ref]


def _problems_of(outcomes: Iterable[ClusterOutcome]) -> tuple[Problem, ...]:
    """Return what is wrong with an XBackend, whatever is spoken to it."""
    return tuple(dict.fromkeys(one for outcome in outcomes for one in outcome.problems))


def _evaluate(problems: tuple[Problem, ...], generation: int) -> tuple[Condition, ...]:
    """Say whether it is accepted; and, while it is so, that its Pods cannot be read: the API has no word for that."""
    if wrong := [one for one in problems if one.severity == "error"]:
        return (fails("Accepted", "Invalid", render_problems(wrong), generation),)
    accepted = holds("Accepted", "Accepted", "XBackend is accepted", generation)
    if unread := [one for one in problems if one.reason == "PodsNotRead"]:
        message = render_problems(unread)
        return (accepted, fails("ResolvedRefs", "PodsNotRead", message, generation))
    return (accepted,)


def _shape(
    conditions: tuple[Condition, ...], gateways: Iterable[Key], world: World
) -> XBackendStatus:
    controller = world.settings.controller_name
    refs = [ParentReference(namespace=namespace, name=name) for namespace, name in gateways]
    if world.settings.bundle_version.startswith(_OLDER):
        return RouteStatus(
            parents=tuple(
                RouteParentStatus(parent_ref=ref, controller_name=controller, conditions=conditions)
                for ref in refs
            )
        )
    return PolicyStatus(
        ancestors=tuple(
            PolicyAncestorStatus(
                ancestor_ref=ref, controller_name=controller, conditions=conditions
            )
            for ref in refs
        )
    )
