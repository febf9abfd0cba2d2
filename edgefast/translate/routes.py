"""All routes: each is translated when it, or a fact it read, changed; else its outcome is taken over.

In: the world, the clusters, the previous outcomes and the changed facts. Out: the outcomes and the
(old, new) pairs that virtual hosts have to follow.
Source: architecture decision 2. The scan over unchanged routes is one set operation each.
Must never: translate a route of a namespace that is not watched.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgefast.resources.httproute import HTTPRoute
from edgefast.resources.snapshot import Key, Snapshot
from edgefast.translate.cluster import Clusters
from edgefast.translate.facts import Fact, Reader, World
from edgefast.translate.route import RouteOutcome, translate_route

Change = tuple[RouteOutcome | None, RouteOutcome | None]


class Routes(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All route outcomes."""

    outcomes: Mapping[Key, RouteOutcome]
    changes: tuple[Change, ...]
    made: int


def translate_routes(
    world: World,
    clusters: Clusters,
    previous: Mapping[Key, RouteOutcome],
    changed: set[Fact],
) -> Routes:
    """Translate what changed; the outcomes are sorted by namespace and name."""
    outcomes: dict[Key, RouteOutcome] = {}
    changes: list[Change] = []
    made = 0
    snapshot = world.snapshot
    for key in sorted(snapshot.http_routes):
        route = snapshot.http_routes[key]
        if not _is_watched(world, key[0]):
            continue
        source = _source_of(route, key, snapshot)
        old = previous.get(key)
        if (
            old is not None
            and old.route is route
            and old.source == source
            and changed.isdisjoint(old.reads)
        ):
            outcomes[key] = old
            continue
        made += 1
        outcomes[key] = translate_route(route, source, Reader(world, clusters.state), old)
        changes.append((old, outcomes[key]))
    changes += [(old, None) for key, old in previous.items() if key not in outcomes]
    return Routes(outcomes=outcomes, changes=tuple(changes), made=made)


def _is_watched(world: World, namespace: str) -> bool:
    settings = world.settings
    if not settings.watch_namespaces and settings.watch_selector is None:
        return True
    found = world.snapshot.namespaces.get(("", namespace))
    return settings.watches(namespace, found.metadata.labels if found else {})


def _source_of(route: HTTPRoute, key: Key, snapshot: Snapshot) -> str:
    """Say where a rule comes from: the generation in a cluster, else the file.

    Without the line: it moves with every edit above it, and each move would rebuild the table.
    """
    if route.metadata.generation:
        return f"generation {route.metadata.generation}"
    found = snapshot.loaded.get(("HTTPRoute", *key))
    return found.file if found else ""
