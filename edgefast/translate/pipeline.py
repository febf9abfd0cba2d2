"""translate(): the table of contents of this room.

In: a snapshot of all objects, settings, and the previous translation, if any. Out: a Translation: the
IR, the infrastructure around it, every status and every problem.
Stages that are cheap (classes, Gateways, conflicts, statuses) run each time; policies, clusters, routes and
virtual hosts run for what changed (facts.py, change.py). The result never depends on `previous`.
Must never: do I/O, read a clock, draw a random number or change an argument.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgefast.problem import Problem
from edgefast.resources.snapshot import Key, Snapshot
from edgefast.translate.assemble import assemble_fleets
from edgefast.translate.change import changed_gateways, changed_objects, changed_policies
from edgefast.translate.cluster import Clusters
from edgefast.translate.facts import Fact, World
from edgefast.translate.gateway import GatewayDraft, translate_gateways
from edgefast.translate.gatewayclass import translate_gateway_classes
from edgefast.translate.keyring import Keyring
from edgefast.translate.listenerset import refuse_listener_sets
from edgefast.translate.merge import merge_gateways
from edgefast.translate.orphan import find_orphans
from edgefast.translate.policy import Policies, translate_policies
from edgefast.translate.reference import index_grants
from edgefast.translate.routes import Routes, translate_routes
from edgefast.translate.settings import Settings
from edgefast.translate.statuses import judge_all
from edgefast.translate.translation import Memo, Translation, Work
from edgefast.translate.virtualhost import Hosts, translate_virtual_hosts


def translate(
    snapshot: Snapshot, settings: Settings, previous: Translation | None = None
) -> Translation:
    """Translate all objects; with `previous`, only what changed since is done anew."""
    world = World(snapshot=snapshot, settings=settings, grants=index_grants(snapshot))
    memo = previous.memo if previous and _is_usable(previous.memo, settings) else None
    keyring = Keyring(snapshot, memo.keyring if memo else None)

    classes = translate_gateway_classes(world)
    gateways = translate_gateways(world, classes, keyring)
    merge_gateways(gateways, settings)
    world = msgspec.structs.replace(world, gateways=_view_gateways(snapshot, gateways))

    changed: set[Fact] = set()
    if memo:
        changed |= changed_objects(memo.world, world)
        changed.update(changed_gateways(memo.world, world))
    policies = translate_policies(world, keyring, memo.policies if memo else Policies(), changed)
    world = msgspec.structs.replace(world, policies=policies.in_force)
    if memo:
        changed.update(changed_policies(memo.world, world))

    clusters = Clusters(world, keyring, memo.clusters if memo else {}, changed)
    changed |= clusters.refresh()
    routes = translate_routes(world, clusters, memo.routes if memo else {}, changed)
    hosts = translate_virtual_hosts(routes.changes, memo.hosts if memo else Hosts())
    all_fleets, infra = assemble_fleets(
        gateways, hosts, clusters, settings, previous.ir if previous else None
    )

    listener_sets, refused = refuse_listener_sets(world)
    statuses, users = judge_all(
        classes, gateways, listener_sets, routes.outcomes, hosts, policies, settings
    )
    problems = _collect_problems(
        snapshot,
        (problem for outcome in classes.values() for problem in outcome.problems),
        (problem for draft in gateways for problem in draft.problems),
        refused,
        _policy_problems(policies),
        (problem for key in used_clusters(routes, clusters) for problem in key),
        (problem for outcome in routes.outcomes.values() for problem in outcome.problems),
        (p for host in hosts.outcomes.values() for found in host.overlaps.values() for p in found),
        find_orphans(world, classes, users),
    )
    return Translation(
        ir=all_fleets,
        infra=infra,
        statuses=statuses,
        problems=problems,
        work=Work(
            routes=routes.made, virtual_hosts=hosts.made, clusters=clusters.made
        ),
        memo=Memo(
            world=world,
            keyring=keyring,
            policies=policies,
            routes=routes.outcomes,
            clusters=clusters.outcomes,
            hosts=hosts,
        ),
    )
