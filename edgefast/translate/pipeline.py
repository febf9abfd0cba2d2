"""Pipeline: translate(), the order of all stages of a translation.

In: a snapshot of all objects, settings, and the previous translation, if any.
Out: a Translation: the IR, the infrastructure around it, every status and every problem. Classes and Gateways run when anything that they
depend on differs (frontend.py), their statuses each time. Policies, clusters, routes and virtual hosts run for what changed (dependency_facts.py,
change.py). The result never depends on `previous`.
Must never: do I/O, read a clock, draw a random number or change an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter, is_

import msgspec

from edgefast.api.snapshot import Snapshot
from edgefast.collections.sorted_map import EMPTY, SortedMap
from edgefast.diagnostics.problem import Problem
from edgefast.translate.adoption.expand import Adoption, expand_adopted
from edgefast.translate.backend.cluster import Clusters
from edgefast.translate.backend.pod_selectors import Lack, Selection, Selectors, choose_selectors
from edgefast.translate.deps.change import (
    changed_attached,
    changed_gateways,
    changed_limit_store,
    changed_objects,
    changed_policies,
)
from edgefast.translate.deps.dependency_facts import Fact, World
from edgefast.translate.deps.referencegrant import check_grants, index_grants
from edgefast.translate.diagnostics.listener_isolation import Owned, find_owned
from edgefast.translate.diagnostics.missing_object import explain_absent
from edgefast.translate.diagnostics.missing_provider import find_unproved
from edgefast.translate.diagnostics.rejected_object import check_references
from edgefast.translate.diagnostics.shared_callback import find_shared_callbacks
from edgefast.translate.diagnostics.unapplied_policy import find_unapplied
from edgefast.translate.diagnostics.unreachable_rule import Reachability, find_unreached
from edgefast.translate.diagnostics.unused_object import find_orphans
from edgefast.translate.filter.listener_filter import (
    FilterChange,
    ListenerFilters,
    translate_listener_filters,
)
from edgefast.translate.fleet.assemble import assemble_fleets
from edgefast.translate.fleet.fleet_cache import FleetCaches
from edgefast.translate.fleet.frontend import translate_frontend
from edgefast.translate.fleet.proxies import find_unplaced
from edgefast.translate.gateway.listenerset import find_lost_sets
from edgefast.translate.ingress.expand import Expansion, expand_ingresses, place_problem
from edgefast.translate.policy.backendtlspolicy import Policies, close_refused, translate_policies
from edgefast.translate.policy.edge_policies import EdgePolicies, OwnChange, translate_edge_policies
from edgefast.translate.policy.inherited import inherit_policies
from edgefast.translate.rate_limit.limit_store import translate_limit_store
from edgefast.translate.route.route_sums import RouteSums, sum_routes
from edgefast.translate.route.routes import Change as RouteChange
from edgefast.translate.route.routes import translate_routes
from edgefast.translate.settings import Settings
from edgefast.translate.status.edge_policy import compute_edge_policy_statuses, find_asked
from edgefast.translate.status.ingress import IngressStatuses, compute_ingress_statuses
from edgefast.translate.status.policy_usage import PolicyUses, count_uses
from edgefast.translate.status.statuses import (
    RouteStatuses,
    compute_route_statuses,
    compute_statuses,
)
from edgefast.translate.status.tls_policy import compute_tls_policy_statuses
from edgefast.translate.status.xbackend import XBackendStatuses, compute_xbackend_statuses
from edgefast.translate.tls.keyring import Keyring
from edgefast.translate.translation import Memo, StatusMemo, Translation, Work
from edgefast.translate.virtual_host.layer4 import Streams, translate_streams
from edgefast.translate.virtual_host.virtual_host import Hosts, translate_virtual_hosts

_PROBLEMS = attrgetter("problems")


def translate(
    snapshot: Snapshot, settings: Settings, previous: Translation | None = None
) -> Translation:
    """Translate all objects; with `previous`, only what changed since is done anew."""
    memo = _usable_memo(previous, settings)
    unfollowed = memo.selectors.unfollowed if memo else EMPTY
    adoption = expand_adopted(snapshot, settings, memo.adoption if memo else None)
    expansion = expand_ingresses(adoption.snapshot, settings, memo.expansion if memo else None)
    found = _translate(adoption, expansion, settings, previous, unfollowed)
    chosen = found.memo.selectors.unfollowed
    if chosen is unfollowed:
        return found
    # Whose Pods are followed is known when it is known who is used, which does not depend on it: the second time is the last.
    made = _translate(adoption, expansion, settings, found, chosen)
    return msgspec.structs.replace(made, work=found.work.plus(made.work))


def _translate(
    adoption: Adoption,
    expansion: Expansion,
    settings: Settings,
    previous: Translation | None,
    unfollowed: SortedMap[Selection, Lack],
) -> Translation:
    """Translate with the selections that are known not to be followed."""
    snapshot = expansion.snapshot
    memo = _usable_memo(previous, settings)
    before = memo.world if memo else None
    if before and before.snapshot.reference_grants is snapshot.reference_grants:
        grants = before.grants
    else:
        grants = index_grants(snapshot)
    world = World(snapshot=snapshot, settings=settings, grants=grants, unfollowed=unfollowed)

    # What the outside of a fleet looks like: classes, Gateways, listeners, conflicts.
    keyring = Keyring(snapshot, memo.keyring if memo else None)
    frontend = translate_frontend(world, keyring, (memo.world, memo.front) if memo else None)
    classes, gateways = frontend.classes, frontend.gateways
    world = msgspec.structs.replace(world, gateways=frontend.views)
    changed: set[Fact] = set()
    if memo:
        changed.update(changed_objects(memo.world, world))

    # Where limited requests are counted.
    limit_store = translate_limit_store(world, keyring, memo.limit_store if memo else None, changed)
    world = msgspec.structs.replace(world, why_no_limits=limit_store.refused)
    if memo:
        changed |= changed_limit_store(memo.world, world)

    # What requests are sent to: policies, clusters.
    policies = translate_policies(world, keyring, memo.policies if memo else Policies(), changed)
    in_force = close_refused(policies.in_force, snapshot)
    world = msgspec.structs.replace(world, policies=in_force)
    if memo:
        changed.update(changed_policies(memo.world, world))
    clusters = Clusters(
        world,
        keyring,
        memo.clusters if memo else EMPTY,
        memo.cluster_uses if memo else EMPTY,
        memo.cluster_notes if memo else frozenset(),
        memo.cluster_readers if memo else EMPTY,
        changed,
    )
    changed |= clusters.refresh()

    # Who may enter, and how: policies of our own, on the way from Gateways to rules.
    own = translate_edge_policies(
        world,
        clusters.state,
        memo.own if memo else EdgePolicies(),
        memo.world if memo else None,
        changed,
    )
    if memo and frontend is memo.front and own.attached is memo.own.attached:
        views = memo.world.gateways
    else:
        views = inherit_policies(frontend.views, own.attached)
    world = msgspec.structs.replace(world, gateways=views, attached=own.attached or EMPTY)
    if memo:
        changed.update(changed_gateways(memo.world, world), changed_attached(memo.world, world))

    # Who is asked before a request is routed.
    filters = translate_listener_filters(
        gateways, world, clusters.state, memo.filters if memo else ListenerFilters(), changed
    )

    # What requests meet: routes, virtual hosts, fleets.
    routes = translate_routes(
        world,
        clusters,
        memo.routes if memo else EMPTY,
        memo.route_readers if memo else EMPTY,
        memo.world if memo else None,
        changed,
    )
    asking: Iterable[RouteChange | OwnChange | FilterChange] = chain(
        routes.changes, own.changes, filters.changes
    )
    clusters.count(
        (old.clusters if old else (), new.clusters if new else ()) for old, new in asking
    )
    hosts = translate_virtual_hosts(routes.changes, memo.hosts if memo else Hosts())
    streams = translate_streams(routes.changes, memo.streams if memo else Streams())
    fleets, infra, caches = assemble_fleets(
        gateways,
        hosts,
        streams,
        clusters,
        own,
        filters,
        limit_store.store,
        settings,
        previous.ir if previous else None,
        previous.infra if previous and memo and frontend is memo.front else None,
        memo.fleet_caches if memo else FleetCaches(),
        snapshot.slices_by_service,
    )

    # What people are told: statuses, and problems when somebody asks.
    unresolved = tuple(check_references(world, clusters.state))
    owned = find_owned(gateways, hosts, memo.owned if memo else Owned())
    reach = find_unreached(
        hosts,
        gateways,
        routes,
        streams,
        owned,
        (memo.hosts, memo.owned, memo.reach) if memo else (Hosts(), Owned(), Reachability()),
    )
    sums = sum_routes(routes.changes, memo.sums if memo else RouteSums())
    route_statuses = compute_route_statuses(
        routes.outcomes, sums, hosts, reach, memo.route_statuses if memo else RouteStatuses()
    )
    uses = count_uses(
        routes.changes, memo.uses if memo else PolicyUses(), attached=bool(own.attached)
    )
    evaluated = compute_edge_policy_statuses(
        own,
        routes,
        uses,
        caches,
        world,
        (memo.judged, memo.front is frontend) if memo else None,
        changed,
    )
    users = (policies, own, evaluated, sums.users, filters.outcomes)
    if memo and previous and all(map(is_, users, memo.users)):
        policy_statuses = previous.statuses.backend_tls_policies
    else:
        requested = find_asked(own, evaluated, world) if policies.outcomes else {}
        policy_statuses = compute_tls_policy_statuses(
            policies,
            lambda one: {*sums.users_of(one), *requested.get(one, ()), *filters.users_of(one)},
            settings,
        )
    x_backends = compute_xbackend_statuses(
        clusters,
        sums,
        own,
        evaluated,
        filters,
        world,
        memo.x_backends if memo else XBackendStatuses(),
    )
    selectors = choose_selectors(x_backends.wishes, memo.selectors if memo else Selectors())
    ingresses = compute_ingress_statuses(
        expansion.served, gateways, settings, memo.ingresses if memo else IngressStatuses()
    )
    statuses = compute_statuses(
        classes,
        gateways,
        route_statuses,
        policy_statuses,
        evaluated,
        x_backends,
        sums,
        settings,
        own.attached,
        filters.outcomes,
        ingresses,
    )

    def find_problems() -> tuple[Problem, ...]:
        found: list[Problem] = [
            *adoption.problems,
            *expansion.find_problems(),
            *limit_store.problems,
            *find_lost_sets(world),
            *find_orphans(world, classes),
            *check_grants(snapshot),
            *unresolved,
            *find_unapplied(
                snapshot,
                gateways,
                routes.outcomes,
                closes=settings.closes_foreign,
                adopt=settings.adopt,
            ),
        ]
        found += chain.from_iterable(map(_PROBLEMS, chain(classes.values(), gateways)))
        found += chain.from_iterable(map(_PROBLEMS, filters.outcomes.values()))
        found += clusters.problems()
        found += sums.every_problem()
        found += policies.problems(None if settings.standalone else statuses.backend_tls_policies)
        found += evaluated.problems(own, standalone=settings.standalone)
        found += find_unproved(
            own, lambda key: settings.standalone or key[1:] in evaluated.of(key[0])
        )
        found += find_shared_callbacks(hosts, own)
        for around, fleet in zip(infra, fleets.fleets, strict=False):
            found += find_unplaced(around, fleet.proxies) if fleet.proxies is not None else ()
        found += hosts.problems()
        found += reach.problems()
        found = [placed for one in found if (placed := adoption.place(one)) is not None]
        return _place_problems(snapshot, expansion, found, hints=settings.standalone)

    return Translation(
        ir=fleets,
        infra=infra,
        statuses=statuses,
        selections=selectors.followed,
        told=StatusMemo(find_problems),
        work=Work(
            routes=routes.made,
            virtual_hosts=hosts.made,
            streams=streams.made,
            clusters=clusters.made,
            policies=own.made,
            filters=filters.made,
        ),
        memo=Memo(
            adoption=adoption,
            expansion=expansion,
            world=world,
            keyring=keyring,
            front=frontend,
            limit_store=limit_store,
            policies=policies,
            own=own,
            filters=filters,
            judged=evaluated,
            uses=uses,
            x_backends=x_backends,
            selectors=selectors,
            users=users,
            routes=routes.outcomes,
            route_readers=routes.readers,
            sums=sums,
            clusters=clusters.outcomes,
            cluster_uses=clusters.uses,
            cluster_notes=clusters.noted,
            cluster_readers=clusters.readers,
            hosts=hosts,
            streams=streams,
            owned=owned,
            reach=reach,
            route_statuses=route_statuses,
            fleet_caches=caches,
            ingresses=ingresses,
        ),
    )


def _usable_memo(previous: Translation | None, settings: Settings) -> Memo | None:
    """Return the memo of the previous translation when its settings mean the same for routes."""
    if previous is None or previous.memo.world.settings.core() != settings.core():
        return None
    return previous.memo


def _place_problems(
    snapshot: Snapshot, expansion: Expansion, found: Iterable[Problem], *, hints: bool
) -> tuple[Problem, ...]:
    """Return each problem once, by object, with its place in a file; those of made objects name the Ingress."""
    placed = []
    if origins := expansion.origins:
        found = [own for one in found if (own := place_problem(one, origins)) is not None]
    once = sorted(dict.fromkeys(found), key=lambda one: str(one.object))
    for problem in explain_absent(once, snapshot, hints=hints):
        source = problem.source  # its own, where the mistake is in another object
        if source is None and problem.object is not None:
            source = snapshot.source_of(problem.object, problem.path)
        placed.append(msgspec.structs.replace(problem, source=source) if source else problem)
    return tuple(placed)
