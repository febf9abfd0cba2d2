"""Reach: rules and hostnames of routes that no request comes to, and who takes the requests instead.

In: virtual hosts with their shadows, the Gateways' listeners, the outcomes of routes. Out: warnings for each route, by
listener (condition RouteRulesShadowed). A match loses to others of its host (shadow.py), to a host before it that has
all of its requests, or its host belongs to a more specific listener of the port. Equal matches of different routes are
told elsewhere (RouteRulesOverlap). Done anew each time, for what there is to tell.
Must never: fail a route; a rule that is of no use today may be there for tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from edgefast.problem import ObjectRef, Problem
from edgefast.resources.reference import GATEWAY_GROUP
from edgefast.resources.snapshot import Key
from edgefast.translate.gateway import GatewayDraft
from edgefast.translate.hostname import ANY, covering
from edgefast.translate.listener import ListenerDraft
from edgefast.translate.owned import Owned, Owner, served_listeners
from edgefast.translate.route import RouteOutcome, RoutePart
from edgefast.translate.shadow import Covers, HostEntry
from edgefast.translate.virtualhost import Hosts, Place

#: By route: (listener, problem).
Unreached = Mapping[Key, Sequence[tuple[str, Problem]]]

_NAMED = 3  # winners and hostnames that a message names

_Losses = dict[tuple[int, int], dict[str, HostEntry]]  # (rule, match): by hostname, who takes it


class _Lost(msgspec.Struct, frozen=True):
    """What one route loses on one listener."""

    matches: _Losses
    hostnames: dict[str, Owner]  # whose requests another listener has


def find_unreached(
    hosts: Hosts,
    gateways: Iterable[GatewayDraft],
    routes: Mapping[Key, RouteOutcome],
    owned: Owned,
) -> Unreached:
    """Return what no request comes to, by route and listener."""
    lost: dict[tuple[Key, str], _Lost] = {}

    def of(key: Key, listener: str) -> _Lost:
        return lost.setdefault((key, listener), _Lost({}, {}))

    for place in sorted(hosts.noted):
        for entry, winner in hosts.outcomes[place].shadows:
            of(entry[6], place[0]).matches.setdefault((entry[2], entry[3]), {})[place[1]] = winner
    for one in served_listeners(gateways):
        for place, entry, winner in _find_across(one, hosts):
            by_name = of(entry[6], place[0]).matches.setdefault((entry[2], entry[3]), {})
            by_name.setdefault(place[1], winner)
    for place, owner in owned.owners.items():
        there = hosts.outcomes.get((owner.listener, place[1]))
        for key in hosts.outcomes[place].parts:
            if there is None or key not in there.parts:
                of(key, place[0]).hostnames[place[1]] = owner
    found: dict[Key, list[tuple[str, Problem]]] = {}
    for (key, listener), losses in sorted(lost.items()):
        parts = {name: part for at, name, part in routes[key].hosts if at == listener}
        problems = found.setdefault(key, [])
        problems += [(listener, one) for one in _tell(key, listener, losses, parts)]
    return {key: problems for key, problems in found.items() if problems}


def _find_across(one: ListenerDraft, hosts: Hosts) -> Iterator[tuple[Place, HostEntry, HostEntry]]:
    """Give matches that hosts before theirs take: only those as wide as the listener can have lost everything."""
    if one.hostname == ANY:
        return
    chain = [(one.name, name) for name in covering(one.hostname)]
    chain = [place for place in chain if place in hosts.outcomes]
    covers = Covers(across=True)
    for place in chain if len(chain) > 1 else ():
        entries = hosts.outcomes[place].entries
        for entry in entries if place is not chain[0] else ():
            winner = covers.find(entry[4])
            # A rule does not lose what it takes by another of its hostnames.
            if winner is not None and (winner[2], winner[6]) != (entry[2], entry[6]):
                yield place, entry, winner
        for entry in entries:
            covers.add(entry)


def _tell(
    key: Key, listener: str, lost: _Lost, parts: Mapping[str, RoutePart]
) -> Iterator[Problem]:
    for hostname, owner in sorted(lost.hostnames.items()):
        said = (
            f"requests to {hostname} never come to {listener}: "
            f"listener {owner.listener} ({owner.hostname}) has the port and a nearer hostname"
        )
        yield _problem(key, "spec.hostnames", said)
    alive = {name: part for name, part in parts.items() if name not in lost.hostnames}
    if not alive or not lost.matches:
        return
    part = next(iter(alive.values()))  # of one listener all are the same
    matches = {(index, at): match for _, index, at, match in part.candidates}
    for index in sorted({index for index, _ in lost.matches}):
        places = sorted(place for place in matches if place[0] == index)
        whole = all(lost.matches.get(place, {}).keys() >= alive.keys() for place in places)
        losses = {
            place: {
                name: winner
                for name, winner in lost.matches.get(place, {}).items()
                if name in alive and (winner[6] == key or winner[4] != matches[place])
            }
            for place in places
        }
        if not any(losses.values()):
            continue
        if whole:
            winners = [lost.matches[place][name] for place in places for name in sorted(alive)]
            said = f"no request comes to it on {listener}: all go to {_name(winners, key)}"
            yield _problem(key, f"spec.rules[{index}]", said)
            continue
        for (_, at), by_name in losses.items():
            if by_name:
                said = f"all its requests on {listener} "
                if by_name.keys() < alive.keys():
                    said += f"for {_list(sorted(by_name))} "
                said += f"go to {_name([by_name[name] for name in sorted(by_name)], key)}"
                yield _problem(key, f"spec.rules[{index}].matches[{at}]", said)


def _name(winners: Iterable[HostEntry], key: Key) -> str:
    """Name rules that take requests, those of other routes with the route."""
    names = {
        f"spec.rules[{one[2]}].matches[{one[3]}]"
        if one[6] == key
        else f"HTTPRoute {'/'.join(one[6])} spec.rules[{one[2]}].matches[{one[3]}]": None
        for one in winners
    }
    return _list(list(names))


def _list(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" and more" if len(names) > _NAMED else "")


def _problem(key: Key, path: str, said: str) -> Problem:
    ref = ObjectRef("HTTPRoute", *key, GATEWAY_GROUP)
    return Problem(ref, path, "Shadowed", said, severity="warning")
