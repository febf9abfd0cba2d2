"""Change: which facts differ between two worlds.

In: the previous world and the present one. Out: the set of changed facts; every outcome that read
one is translated again. Tables that snapshots share cost nothing; other tables cost their changed
chunks (sorted_map.py).
Must never: miss a difference; every answer of a `Reader` has a line here or in the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from edgefast.api.edge.policy_target import BACKEND_TARGETS
from edgefast.api.model.route_name import ROUTE_KINDS, route_key
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import find_unlike
from edgefast.translate.deps.dependency_facts import Fact, World

_K = TypeVar("_K")


def changed_objects(old: World, new: World) -> set[Fact]:
    """Return the changed facts that objects stand for directly."""
    before, after = old.snapshot, new.snapshot
    changed: set[Fact] = set()
    changed.update(_diff("Service", before.services, after.services))
    changed.update(_diff("Slices", before.slices_by_service, after.slices_by_service))
    changed.update(_diff("Backend", before.backends, after.backends))
    changed.update(_diff("XBackend", before.x_backends, after.x_backends))
    changed.update(_diff("Pods", before.pods, after.pods))
    changed.update(_diff("RateLimitFilter", before.rate_limit_filters, after.rate_limit_filters))
    changed.update(_diff("HTTPRouteFilter", before.http_route_filters, after.http_route_filters))
    changed.update(_diff("Secret", before.secrets, after.secrets))
    changed.update(_diff("ConfigMap", before.config_maps, after.config_maps))
    bundles = before.cluster_trust_bundles, after.cluster_trust_bundles
    changed.update(_diff("ClusterTrustBundle", *bundles))
    changed.update(_diff("ListenerSet", before.listener_sets, after.listener_sets))
    changed.update(_diff("Namespace", before.namespaces, after.namespaces))
    for fact in _diff_plain(old.grants, new.grants):
        changed.add(("Grants", "", fact))
    changed.update(_diff("Unfollowed", old.unfollowed, new.unfollowed))
    return changed


def changed_gateways(old: World, new: World) -> Iterator[Fact]:
    """Return the facts of Gateways whose view differs."""
    return _diff("Gateway", old.gateways, new.gateways)


def changed_policies(old: World, new: World) -> Iterator[Fact]:
    """Return the facts of Services whose policies differ."""
    return _diff("Policy", old.policies, new.policies)


def changed_attached(old: World, new: World) -> Iterator[Fact]:
    """Return the facts of routes, Services and Backends whose own policies, or those of their parts, have other shapes."""
    for kind, namespace, name, _ in _diff_plain(old.attached, new.attached):
        if kind in ROUTE_KINDS:
            yield ("Attached", *route_key(kind, namespace, name))
        elif kind in BACKEND_TARGETS:
            yield (f"{kind}Policies", namespace, name)


def changed_limit_store(old: World, new: World) -> set[Fact]:
    """Return the fact whether counters can be kept, when that differs."""
    return set() if old.why_no_limits == new.why_no_limits else {("LimitStore", "", "")}


def _diff(kind: str, old: Mapping[Key, object], new: Mapping[Key, object]) -> Iterator[Fact]:
    for namespace, name in _diff_plain(old, new):
        yield (kind, namespace, name)


_ABSENT = object()


def _diff_plain(old: Mapping[_K, object], new: Mapping[_K, object]) -> Iterator[_K]:
    before, after = find_unlike(old, new)
    for key, value in after.items():
        known = before.get(key, _ABSENT)
        if known is not value and known != value:
            yield key
    for key in before:
        if key not in after:
            yield key
