"""Routes: translates each route when it, or a fact it read, changed; else keeps its outcome.

In: the world, the clusters, the previous outcomes and the changed facts.
Out: the outcomes and the (old, new) pairs for the virtual hosts.
Source: architecture decision 2. Routes that did not change cost nothing.
Must never: translate a route of a namespace that is not watched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from edgefast.api.gateway.grpcroute import GRPCRoute
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.gateway.layer4_route import AnyRoute, TCPRoute, TLSRoute, UDPRoute
from edgefast.api.model.route_name import ROUTE_KINDS, RouteKey, kind_of, plain_key, route_key
from edgefast.api.snapshot import Key, Snapshot
from edgefast.collections.sorted_map import SortedMap, find_unlike
from edgefast.translate.backend.cluster import Clusters
from edgefast.translate.deps.dependency_facts import Fact, Reader, World, is_read
from edgefast.translate.deps.intern import intern
from edgefast.translate.deps.readers import Readers, find_readers, follow
from edgefast.translate.route.layer4 import translate_stream_route
from edgefast.translate.route.outcome import RouteOutcome
from edgefast.translate.route.route import translate_route
from edgefast.translate.route.route_conflicts import resolve_conflicts

#: Of kinds whose keys say what they are: where their routes are.
_TABLES: Mapping[str, Callable[[Snapshot], Mapping[Key, AnyRoute]]] = {
    "GRPCRoute": lambda snapshot: snapshot.grpc_routes,
    "TLSRoute": lambda snapshot: snapshot.tls_routes,
    "TCPRoute": lambda snapshot: snapshot.tcp_routes,
    "UDPRoute": lambda snapshot: snapshot.udp_routes,
}
Change = tuple[RouteOutcome | None, RouteOutcome | None]


class Routes(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All route outcomes."""

    outcomes: SortedMap[RouteKey, RouteOutcome]
    readers: Readers[RouteKey]
    changes: tuple[Change, ...]
    made: int


def translate_routes(
    world: World,
    clusters: Clusters,
    previous: SortedMap[RouteKey, RouteOutcome],
    readers: Readers[RouteKey],
    before: World | None,
    changed: set[Fact],
) -> Routes:
    """Translate what changed since `before`; `readers` are those of `previous`."""
    outcomes, reading = previous.edit(), readers.edit()
    changes: dict[RouteKey, Change] = {}
    made = 0
    snapshot = world.snapshot
    for key in sorted(_find_suspects(world, previous, readers, before, changed)):
        route: AnyRoute | None = snapshot.http_routes.get(key)
        if route is None and "/" in key[0]:
            route = _TABLES[kind_of(key)](snapshot).get(plain_key(key))
        old = previous.get(key)
        if route is None or not _is_watched(world, route.metadata.namespace):
            if old is not None:
                changes[key] = (old, None)
                del outcomes[key]
                follow(reading, key, old.reads)
            continue
        source = _source_of(route, snapshot)
        if (
            old is not None
            and old.route is route
            and old.source == source
            and not is_read(changed, old.reads)
            and ("Attached", *key) not in changed
        ):
            continue
        made += 1
        kept = old.rival or old if old else None
        reader = Reader(world, clusters.state)
        if type(route) is HTTPRoute or type(route) is GRPCRoute:  # no call for each of ten thousand
            new = translate_route(key, route, source, reader, kept)
        else:
            assert isinstance(route, TLSRoute | TCPRoute | UDPRoute)
            new = translate_stream_route(key, route, source, reader, kept)
        outcomes[key] = new
        follow(reading, key, old.reads if old else (), new.reads)
        changes[key] = (old, new)
    settled = resolve_conflicts(outcomes.done(), changes)
    return Routes(
        outcomes=settled, readers=reading.done(), changes=tuple(changes.values()), made=made
    )


def _find_suspects(
    world: World,
    previous: SortedMap[RouteKey, RouteOutcome],
    readers: Readers[RouteKey],
    before: World | None,
    changed: set[Fact],
) -> set[RouteKey]:
    """Return all routes that may have to be translated again, or are gone."""
    snapshot = world.snapshot
    old = before.snapshot if before is not None else None
    if old is None or (old.namespaces is not snapshot.namespaces and _is_limited(world)):
        others = (
            route_key(kind, *key) for kind, table in _TABLES.items() for key in table(snapshot)
        )
        return {*snapshot.http_routes, *others, *previous}
    found: set[RouteKey] = set().union(*find_unlike(old.http_routes, snapshot.http_routes))
    for kind, table in _TABLES.items():
        for unlike in find_unlike(table(old), table(snapshot)):
            found.update(route_key(kind, *key) for key in unlike)
    for moved in find_unlike(old.loaded, snapshot.loaded):  # the file may be another one
        found.update(route_key(*key) for key in moved if key[0] in ROUTE_KINDS)
    # That a route has read what is attached to it goes without saying.
    found.update((fact[1], fact[2]) for fact in changed if fact[0] == "Attached")
    return found | find_readers(readers, changed)


def _is_limited(world: World) -> bool:
    settings = world.settings
    return bool(settings.watch_namespaces) or settings.watch_selector is not None


def _is_watched(world: World, namespace: str) -> bool:
    settings = world.settings
    if not _is_limited(world):
        return True
    found = world.snapshot.namespaces.get(("", namespace))
    return settings.watches(namespace, found.metadata.labels if found else {})


def _source_of(route: AnyRoute, snapshot: Snapshot) -> str:
    """Say where a rule comes from: the generation in a cluster, else the file.

    Without the line: it moves with every edit above it, and each move would rebuild the table.
    """
    if route.metadata.generation:
        return intern(f"generation {route.metadata.generation}")
    meta = route.metadata
    found = snapshot.loaded.get((type(route).__name__, meta.namespace, meta.name))
    return found.file if found else ""
