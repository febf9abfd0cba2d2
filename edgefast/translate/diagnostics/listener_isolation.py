"""Listener isolation: hosts of a listener that lose every request to a more specific listener of the port.

In: the Gateways' listeners, the virtual hosts, the previous result.
Out: each such host where a route loses requests, with the winning listener; a route that is on both
loses none. While the listeners are the same, it checks only changed hosts and those of the same
name.
Source: Gateway API Listener.hostname ("the most specific match MUST be used"), GEP-1713.
Must never: differ from a result without a previous one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from edgefast.collections.sorted_map import EMPTY, SortedMap
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft
from edgefast.translate.match.hostname import covering, narrower
from edgefast.translate.virtual_host.virtual_host import Hosts, Place


class Owner(msgspec.Struct, frozen=True):
    """The listener that has the requests."""

    listener: str
    hostname: str


class _Port(msgspec.Struct, frozen=True):
    """What listeners of one fleet and port are called; only ports with listeners within others'."""

    by_hostname: Mapping[str, str]  # the first listener that has it


class Owned(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Never changed after it was made."""

    wide: Mapping[str, tuple[str, _Port]] = {}  # listeners that others are within: hostname, port
    owners: SortedMap[Place, Owner] = EMPTY
    gateways: Sequence[GatewayDraft] = ()  # that `wide` is of


def find_owned(gateways: Sequence[GatewayDraft], hosts: Hosts, previous: Owned) -> Owned:
    """Return the hosts whose requests another listener has."""
    wide = previous.wide if gateways is previous.gateways else _find_wide(gateways)
    if wide is previous.wide or wide == previous.wide:
        owners = previous.owners.edit()
        names = {name for _, name in hosts.touched} if wide else set()
        places = [(listener, name) for name in names for listener in wide]
    else:
        owners = EMPTY.edit()
        places = list(hosts.outcomes) if wide else []
    for place in places:
        owner = owner_of(place, wide) if place in hosts.outcomes else None
        if owner is None or not _loses(place, owner, hosts):
            owners.pop(place, None)
        elif owners.get(place) != owner:
            owners[place] = owner
    return Owned(wide=wide, owners=owners.done(), gateways=gateways)


def owner_of(place: Place, wide: Mapping[str, tuple[str, _Port]]) -> Owner | None:
    """Return the other listener that has every request to the host."""
    found = wide.get(place[0])
    if found is None:
        return None
    hostname, port = found
    names = port.by_hostname
    common = narrower(hostname, place[1])
    nearest = next(name for name in covering(common) if name in names)
    listener = names[nearest]
    return Owner(listener, nearest) if listener != place[0] else None


def _loses(place: Place, owner: Owner, hosts: Hosts) -> bool:
    """Whether a route of the host is not on its owner's host of that name."""
    there = hosts.outcomes.get((owner.listener, place[1]))
    return there is None or not hosts.outcomes[place].routes <= there.routes


def placed_listeners(gateways: Iterable[GatewayDraft]) -> Iterator[ListenerDraft]:
    """Give the listeners that have requests: those that are served, and those that are closed in their place."""
    for draft in gateways:
        accepted = draft.accepted
        yield from (one for one in draft.listeners if one.held_by or (accepted and one.placed))


def _find_wide(gateways: Iterable[GatewayDraft]) -> dict[str, tuple[str, _Port]]:
    groups: dict[tuple[str, object], list[ListenerDraft]] = {}
    for draft in gateways:
        for one in placed_listeners((draft,)):
            groups.setdefault((draft.fleet, one.place), []).append(one)
    found: dict[str, tuple[str, _Port]] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        by_hostname: dict[str, str] = {}
        for one in group:
            by_hostname.setdefault(one.hostname, one.name)
        port = _Port(by_hostname)
        wider = {name for other in by_hostname for name in covering(other) if name != other}
        found.update((one.name, (one.hostname, port)) for one in group if one.hostname in wider)
    return found
