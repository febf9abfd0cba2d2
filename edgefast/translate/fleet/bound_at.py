"""Bound at: the addresses where the listeners of a port are served, and the Gateways that share them.

In: the drafts of one fleet. Out: `group` and `addresses` of each listener. Standalone only: the
fleet of a cluster binds all addresses. A Gateway has the addresses of spec.addresses that --bind
allows; without spec.addresses it has all of --bind. Gateways of one port with overlapping addresses
form a group, in which they can conflict. Two of them share the port only with the same addresses:
else the later one is refused (merge.py). Served listeners therefore have the same addresses, or
none in common.
Source: Gateway API GatewaySpec.addresses.
Must never: serve a listener at an address that its Gateway does not request; let an object that is
not served open an address.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from edgefast.api.snapshot import Key
from edgefast.netaddr import read_address
from edgefast.translate.gateway.address import usable_addresses
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import PortKey
from edgefast.translate.settings import Settings

__all__ = ["Addresses", "group_by_address", "overlap", "settle_addresses"]

#: Addresses that a Gateway has; empty: all of the machine.
Addresses = frozenset[str]
_ALL: Addresses = frozenset()


def group_by_address(
    members: Sequence[GatewayDraft], settings: Settings
) -> Mapping[Key, Addresses]:
    """Set the group of each listener, and return the addresses that each Gateway has."""
    if not settings.standalone:
        return {}
    every = _every(settings)
    requested = {one.key: usable_addresses(one.gateway, settings) or every for one in members}
    if not any(requested.values()):
        return requested
    ports: dict[PortKey, dict[Addresses, None]] = defaultdict(dict)
    for draft in members:
        for one in draft.listeners:
            if one.known and not one.unbound:
                ports[one.bound][requested[draft.key]] = None
    groups = {port: _join(sets) for port, sets in ports.items()}
    for draft in members:
        for one in draft.listeners:
            found = groups.get(one.bound, ())
            one.group = next(
                (tuple(sorted(each)) for each in found if requested[draft.key] <= each), ()
            )
    return requested


def settle_addresses(
    members: Sequence[GatewayDraft], requested: Mapping[Key, Addresses], settings: Settings
) -> None:
    """Set at which addresses each listener is bound; one that is held beside another one has the addresses of that."""
    if not any(requested.values()):
        return
    every = _every(settings)
    listeners = [(draft, one) for draft in members for one in draft.listeners]
    for draft, one in listeners:
        found = requested[draft.key]
        one.addresses = () if found == every else tuple(sorted(found))
    for _, one in listeners:
        if one.held_by is not None:
            one.addresses = one.held_by.addresses


def overlap(one: Addresses, other: Addresses) -> bool:
    """Tell whether two Gateways with different addresses have one in common."""
    return one != other and (not one or not other or not one.isdisjoint(other))


def _every(settings: Settings) -> Addresses:
    """Return what --bind names; all where it names none, or a wildcard, or a text that is no plain address."""
    read = [read_address(one) for one in settings.addresses]
    if any(one is None or one.is_unspecified for one in read):
        return _ALL
    return frozenset(str(one) for one in read)


def _join(sets: Mapping[Addresses, None]) -> list[Addresses]:
    """Join those that overlap."""
    if _ALL in sets:
        return []
    joined: list[Addresses] = []
    for one in sets:
        for other in [each for each in joined if each & one]:
            joined.remove(other)
            one |= other
        joined.append(one)
    return joined
