"""Unreachable rule: rules and hostnames of routes that receive no request, and which route receives them.

In: virtual hosts with shadowed matches, layer 4 routes, the Gateways' listeners, the outcomes of
routes, the previous result.
Out: warnings for each route, by listener (condition RouteRulesShadowed), and the routes that were
checked. A match loses to others of its host (shadowed_match.py) or to an earlier host that has all
of its requests. It also loses when its host belongs to a more specific listener of the port.
RouteRulesOverlap reports equal matches of different routes. It checks only routes that changed, or
that lose or lost something on a changed host.
Must never: fail a route; an unreachable rule may be needed tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from edgefast import ir
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.model.route_name import ref_of_key
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import EMPTY, SortedMap, find_unlike
from edgefast.diagnostics.problem import Problem
from edgefast.translate.diagnostics.listener_isolation import Owned, Owner, placed_listeners
from edgefast.translate.diagnostics.unreachable_layer4 import (
    Nearest,
    find_nearest,
    report_unreachable_streams,
    suspect_streams,
)
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft
from edgefast.translate.match.hostname import ANY, covering
from edgefast.translate.route.outcome import RouteOutcome, RoutePart, key_of_route
from edgefast.translate.route.routes import Routes
from edgefast.translate.virtual_host.layer4 import Streams
from edgefast.translate.virtual_host.shadowed_match import Covers, HostEntry
from edgefast.translate.virtual_host.virtual_host import Hosts, Loss, Place

#: Of one route: (listener, problem).
Warnings = tuple[tuple[str, Problem], ...]

_NAMED = 3  # winners and hostnames that a message names

_Losses = dict[tuple[int, int], dict[str, HostEntry]]  # (rule, match): by hostname, who takes it
_Beyond = Mapping[tuple[Key, Place], tuple[Loss, ...]]  # what hosts before theirs take


class Across(msgspec.Struct, frozen=True):
    """What hosts of one listener lose to others of it that come before them."""

    chain: tuple[Place, ...]  # the hosts, the nearest first
    losses: _Beyond


class Reachability(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Never changed after it was made."""

    warnings: SortedMap[Key, Warnings] = EMPTY  # of routes that have any
    across: Mapping[str, Across] = {}  # by listener
    nearest: Nearest = {}
    suspects: frozenset[Key] = frozenset()  # routes that were looked at
    gateways: Sequence[GatewayDraft] = ()  # that `listeners` are of
    listeners: Mapping[str, ListenerDraft] = {}  # that have requests, by name

    def problems(self) -> Iterator[Problem]:
        """Give the warnings of all routes."""
        for warnings in self.warnings.values():
            yield from (problem for _, problem in warnings)


class _Unreachable(msgspec.Struct, frozen=True):
    """What one route loses on one listener."""

    matches: _Losses
    hostnames: dict[str, Owner]  # whose requests another listener has


def find_unreached(
    hosts: Hosts,
    gateways: Sequence[GatewayDraft],
    routes: Routes,
    streams: Streams,
    owned: Owned,
    before: tuple[Hosts, Owned, Reachability],
) -> Reachability:
    """Return what no request comes to; `before` are the hosts, the owned ones and the result of the last translation."""
    old_hosts, old_owned, previous = before
    across: dict[str, Across] = {}
    if gateways is previous.gateways:
        listeners = previous.listeners
        touched = {name for name, _ in hosts.touched} & listeners.keys()
        across.update(previous.across)
    else:
        listeners = {one.name: one for one in placed_listeners(gateways)}
        touched = {*listeners}
    for listener in touched:
        known = _find_across(listeners[listener], hosts, previous.across.get(listener))
        if known is not None:
            across[listener] = known
        else:
            across.pop(listener, None)
    suspects = {key for change in routes.changes for key in _keys_of(change)}
    nearest = find_nearest(gateways, streams)
    suspects.update(suspect_streams(streams, nearest, owned, (previous.nearest, old_owned)))
    suspects |= _suspect_hosts(hosts, old_hosts)
    suspects |= _suspect_owned(hosts, owned, old_hosts, old_owned)
    suspects |= _suspect_across(across, previous.across)
    warnings = previous.warnings.edit()
    for key in sorted(suspects):
        outcome = routes.outcomes.get(key)
        found: Warnings = ()
        if outcome is not None and outcome.streams:
            found = tuple(report_unreachable_streams(key, outcome, streams, nearest, owned))
        elif outcome is not None:
            found = _warn(key, outcome, hosts, owned, across)
        if found:
            warnings[key] = found
        else:
            warnings.pop(key, None)
    return Reachability(
        warnings=warnings.done(),
        across=across,
        nearest=nearest,
        suspects=frozenset(suspects),
        gateways=gateways,
        listeners=listeners,
    )


def _keys_of(change: tuple[RouteOutcome | None, RouteOutcome | None]) -> Iterator[Key]:
    for one in change:
        if one is not None:
            meta = one.route.metadata
            plain = type(one.route) is HTTPRoute
            yield (meta.namespace, meta.name) if plain else key_of_route(one.route)


def _suspect_hosts(hosts: Hosts, old: Hosts) -> set[Key]:
    """Return the routes that lose something else than before on hosts that were touched."""
    found: set[Key] = set()
    for place in hosts.touched:
        before, after = old.outcomes.get(place), hosts.outcomes.get(place)
        found |= _unlike(before.overlaps if before else {}, after.overlaps if after else {})
        found |= _unlike(before.shadows if before else {}, after.shadows if after else {})
    return found


def _unlike(old: Mapping[Key, object], new: Mapping[Key, object]) -> set[Key]:
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def _suspect_owned(hosts: Hosts, owned: Owned, old_hosts: Hosts, old_owned: Owned) -> set[Key]:
    """Return the routes of hosts whose owner is another one, or has got or lost routes."""
    gone, come = find_unlike(old_owned.owners, owned.owners)
    places: set[Place] = {*gone, *come}
    if owned.owners:
        names = {name for _, name in hosts.touched}
        places |= {(listener, name) for name in names for listener in owned.wide}
    found: set[Key] = set()
    for place in places:
        for owners, there in ((old_owned.owners, old_hosts), (owned.owners, hosts)):
            one = there.outcomes.get(place) if place in owners else None
            if one is not None:
                found |= one.routes
    return found


def _suspect_across(across: Mapping[str, Across], old: Mapping[str, Across]) -> set[Key]:
    found: set[Key] = set()
    for name in across.keys() | old.keys():
        before, after = old.get(name), across.get(name)
        if before is not after:
            found.update(key for one in (before, after) if one for key, _ in one.losses)
    return found


def _find_across(one: ListenerDraft, hosts: Hosts, old: Across | None) -> Across | None:
    """Find matches that hosts before theirs take: only those as wide as the listener can have lost everything."""
    if one.hostname == ANY:
        return None
    chain = tuple(
        place for name in covering(one.hostname) if (place := (one.name, name)) in hosts.outcomes
    )
    if len(chain) < 2:
        return None
    if old is not None and old.chain == chain and hosts.touched.isdisjoint(chain):
        return old
    covers = Covers(across=True)
    losses: dict[tuple[Key, Place], list[Loss]] = {}
    for place in chain:
        entries = hosts.outcomes[place].entries()
        for entry in entries if place is not chain[0] else ():
            winner = covers.find(entry[4])
            # A rule does not lose what it takes by another of its hostnames.
            if winner is not None and (winner[2], winner[6]) != (entry[2], entry[6]):
                losses.setdefault((entry[6], place), []).append((entry, winner))
        for entry in entries:
            covers.add(entry)
    return Across(chain, {at: tuple(found) for at, found in losses.items()})


def _warn(
    key: Key, outcome: RouteOutcome, hosts: Hosts, owned: Owned, across: Mapping[str, Across]
) -> Warnings:
    """Return what there is to tell of one route."""
    lost: dict[str, _Unreachable] = {}
    for listener, name, part in outcome.hosts:
        place = (listener, name)
        losses = hosts.outcomes[place].shadows.get(key, ())
        if listener in across:
            losses += across[listener].losses.get((key, place), ())
        owner = owned.owners.get(place)
        if owner is not None:
            there = hosts.outcomes.get((owner.listener, name))
            owner = owner if there is None or key not in there.routes else None
        if not losses and owner is None:
            continue
        here = lost.setdefault(listener, _Unreachable({}, {}))
        for entry, winner in _whole(losses, part):
            here.matches.setdefault((entry[2], entry[3]), {}).setdefault(name, winner)
        if owner is not None:
            here.hostnames[name] = owner
    found: list[tuple[str, Problem]] = []
    for listener in sorted(lost):
        parts = {name: part for at, name, part in outcome.hosts if at == listener}
        found += [(listener, one) for one in _notify(key, listener, lost[listener], parts)]
    return tuple(found)


def _whole(losses: Iterable[Loss], part: RoutePart) -> Iterator[Loss]:
    """Leave out what one way of a match loses while another does not: HTTPRouteFilters make several of one."""
    gone = {(entry[2], entry[3], entry[4]) for entry, _ in losses}
    alive = {
        (index, at) for _, index, at, match in part.candidates if (index, at, match) not in gone
    }
    return ((entry, winner) for entry, winner in losses if (entry[2], entry[3]) not in alive)


def _notify(
    key: Key, listener: str, lost: _Unreachable, parts: Mapping[str, RoutePart]
) -> Iterator[Problem]:
    for hostname, owner in sorted(lost.hostnames.items()):
        message = f"requests to {hostname} never reach {listener}: listener {owner.listener} ({owner.hostname}) has the same port and a more specific hostname"
        yield _problem(key, "spec.hostnames", message)
    alive = {name: part for name, part in parts.items() if name not in lost.hostnames}
    if not alive or not lost.matches:
        return
    part = next(iter(alive.values()))  # of one listener all are the same
    matches: dict[tuple[int, int], set[ir.Match]] = {}
    for _, at_rule, at, match in part.candidates:
        matches.setdefault((at_rule, at), set()).add(match)
    for index in sorted({index for index, _ in lost.matches}):
        places = sorted(place for place in matches if place[0] == index)
        whole = all(lost.matches.get(place, {}).keys() >= alive.keys() for place in places)
        losses = {
            place: {
                name: winner
                for name, winner in lost.matches.get(place, {}).items()
                if name in alive and (winner[6] == key or winner[4] not in matches[place])
            }
            for place in places
        }
        if not any(losses.values()):
            continue
        if whole:
            winners = [lost.matches[place][name] for place in places for name in sorted(alive)]
            message = f"no request reaches it on {listener}: all go to {_name(winners, key)}"
            yield _problem(key, f"spec.rules[{index}]", message)
            continue
        for (_, at), by_name in losses.items():
            if by_name:
                message = f"all its requests on {listener} "
                if by_name.keys() < alive.keys():
                    message += f"for {_list(sorted(by_name))} "
                message += f"go to {_name([by_name[name] for name in sorted(by_name)], key)}"
                yield _problem(key, f"spec.rules[{index}].matches[{at}]", message)


def _name(winners: Iterable[HostEntry], key: Key) -> str:
    """Name rules that take requests, those of other routes with the route."""
    names = {
        f"spec.rules[{one[2]}].matches[{one[3]}]"
        if one[6] == key
        else f"{ref_of_key(one[6])} spec.rules[{one[2]}].matches[{one[3]}]": None
        for one in winners
    }
    return _list(list(names))


def _list(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" and more" if len(names) > _NAMED else "")


def _problem(key: Key, path: str, message: str) -> Problem:
    return Problem(ref_of_key(key), path, "Shadowed", message, severity="warning")
