"""Policy target: what a SecurityPolicy or BackendTrafficPolicy targets, and the Gateways above the target.

In: one target, the Gateways as routes see them, the outcomes of routes.
Out: a `Place`: the Gateways of edgefast above it, each with the merged units at listeners, or the
problem of the target. Units of routes are in policy_usage.py.
Source: GEP-713: a policy's ancestors are Gateways; a sectionName that does not exist attaches
nowhere.
Must never: reveal what another controller serves, or what is in namespaces that are not watched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from edgefast.api.model.route_name import RouteKey, route_key
from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.deps.dependency_facts import ListenerView, World
from edgefast.translate.deps.policy_summary import Target
from edgefast.translate.gateway.listenerset import parent_of
from edgefast.translate.policy.merge import merge_levels
from edgefast.translate.policy.missing_target import report_missing_section, report_missing_target
from edgefast.translate.route.outcome import RouteOutcome

__all__ = ["Effect", "Place", "find_place"]

Routes = Mapping[RouteKey, RouteOutcome]


class Effect(msgspec.Struct, frozen=True, gc=False):
    """What merging gives at one place below a target: names of units that hold, and of those that do not, by whom."""

    holds: frozenset[str]
    lost: tuple[tuple[str, str], ...]


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a target leads: to these Gateways; `missing`: it, or its section, is not there."""

    gateways: Mapping[Key, tuple[Effect, ...]] = {}
    missing: Problem | None = None
    attached: bool = True  # a section that is not there attaches nowhere


def find_place(target: Target, path: str, policy: ObjectRef, world: World, routes: Routes) -> Place:
    """Look for a target of a policy; `path` is its field path."""
    kind, namespace, name, section = target
    if kind == "Gateway":
        return _find_gateway((namespace, name), section, path, policy, world)
    if kind == "ListenerSet":
        return _find_set((namespace, name), section, path, policy, world)
    outcome = routes.get(route_key(kind, namespace, name))
    if outcome is None:
        return Place(
            missing=report_missing_target(policy, path, f"{kind} {namespace}/{name}"),
            attached=False,
        )
    return _find_route(outcome, target, path, policy, world)


def _find_gateway(key: Key, section: str, path: str, policy: ObjectRef, world: World) -> Place:
    named = f"Gateway {key[0]}/{key[1]}"
    if key not in world.gateways:
        return Place(missing=report_missing_target(policy, path, named), attached=False)
    view = world.gateways[key]
    if view is None:
        return Place()
    own = [one for one in view.listeners if one.set is None]
    if not section:
        return Place({key: _effects(view.listeners)})
    found = [one for one in own if one.section == section]
    if found or view.closed:
        return Place({key: _effects(found)})
    names = (one.section for one in own)
    missing = report_missing_section(policy, path, named, section, names, "listener")
    return Place({key: ()}, missing, attached=False)


def _find_set(key: Key, section: str, path: str, policy: ObjectRef, world: World) -> Place:
    named, found = f"ListenerSet {key[0]}/{key[1]}", world.snapshot.listener_sets.get(key)
    if found is None:
        return Place(missing=report_missing_target(policy, path, named), attached=False)
    parent = parent_of(found)
    view = world.gateways.get(parent) if parent is not None else None
    if parent is None or view is None:
        return Place()
    there = [one for one in view.listeners if one.set == key]
    names = [one.name for one in found.spec.listeners]
    if section and section not in names and found.closed is None:
        missing = report_missing_section(policy, path, named, section, names, "listener")
        return Place({parent: ()}, missing, attached=False)
    return Place({parent: _effects(one for one in there if section in ("", one.section))})


def _effects(listeners: Iterable[ListenerView]) -> tuple[Effect, ...]:
    """Return what holds at listeners, before routes say anything."""
    found = []
    for one in listeners:
        if not one.served:
            continue
        made = merge_levels(one.policies)
        found.append(Effect(frozenset((*made.policies, *made.traffic)), made.lost))
    return tuple(found)


def _find_route(
    outcome: RouteOutcome, target: Target, path: str, policy: ObjectRef, world: World
) -> Place:
    kind, namespace, name, section = target
    route = outcome.route
    names = [one.name or "" for one in route.spec.rules]
    gateways = dict.fromkeys(_gateways_of(outcome, world))
    if section and section not in names and route.closed is None:
        there = (one for one in names if one)
        named = f"{kind} {namespace}/{name}"
        missing = report_missing_section(policy, path, named, section, there, "named rule")
        return Place(dict.fromkeys(gateways, ()), missing, attached=False)
    return Place(dict.fromkeys(gateways, ()))


def _gateways_of(outcome: RouteOutcome, world: World) -> Iterator[Key]:
    """Give the Gateways of ours that a route names, or that a ListenerSet which it names is of."""
    own: str = outcome.route.metadata.namespace
    for one in outcome.status.parents:
        ref = one.parent_ref
        key = (ref.namespace or own, ref.name)
        if ref.kind == "ListenerSet":
            found = world.snapshot.listener_sets.get(key)
            parent = parent_of(found) if found is not None else None
            if parent is not None:
                yield parent
        else:
            yield key
