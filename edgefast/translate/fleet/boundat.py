"""Addresses of ports: at which addresses the listeners of a port are served, and which Gateways share it there.

In: the drafts of one fleet. Out: `group` and `addresses` of each listener. Standalone only: a cluster's fleet binds all addresses.
A Gateway has the addresses of its spec.addresses that are bound; without one it has all that are. Gateways of one port whose addresses
overlap form a group: they can conflict, and all of them are served at the addresses of those that are served. All other Gateways have
the port to themselves. One that has all addresses of the machine overlaps with every Gateway, because one socket takes their connections.
Source: Gateway API GatewaySpec.addresses. Must never: let an object that is not served open an address.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from edgefast.api.gateway.gateway import Gateway
from edgefast.api.snapshot import Key
from edgefast.netaddr import read_address
from edgefast.translate.gateway.address import is_bound
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import PortKey
from edgefast.translate.settings import Settings

__all__ = ["group_by_address", "settle_addresses"]

#: Addresses that a Gateway has; empty: all of the machine.
_Addresses = frozenset[str]
_ALL: _Addresses = frozenset()


def group_by_address(
    members: Sequence[GatewayDraft], settings: Settings
) -> Mapping[Key, _Addresses]:
    """Set the group of each listener, and return the addresses that each Gateway has."""
    if not settings.standalone:
        return {}
    every = _every(settings)
    requested = {draft.key: _was_requested(draft.gateway, settings) or every for draft in members}
    if not any(requested.values()):
        return requested
    ports: dict[PortKey, dict[_Addresses, None]] = defaultdict(dict)
    for draft in members:
        for one in draft.listeners:
            if one.known:
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
    members: Sequence[GatewayDraft], requested: Mapping[Key, _Addresses], settings: Settings
) -> None:
    """Set at which addresses each listener is bound, and warn of those that its Gateway does not ask for."""
    if not any(requested.values()):
        return
    every = _every(settings)
    ports: dict[PortKey, set[_Addresses]] = defaultdict(set)
    for draft in members:
        for one in draft.listeners:
            if draft.accepted and one.placed:
                ports[one.bound].add(requested[draft.key])
    bound = {
        port: _ALL if _ALL in sets else frozenset().union(*sets) for port, sets in ports.items()
    }
    for draft in members:
        own = _was_requested(draft.gateway, settings)
        for one in draft.listeners:
            found = bound.get(one.bound, _ALL)
            one.addresses = () if found == every else tuple(sorted(found))
            if own and one.bound in bound and own != found and draft.accepted and one.placed:
                others = ", ".join(sorted(found - own)) or "all addresses"
                message = (
                    f"port {one.port} is served at {others} too, which a Gateway with an address "
                    "in common asks for; give each Gateway other addresses or another port"
                )
                one.report.warn(f"{one.path}.port", "Forbidden", message)


def _was_requested(gateway: Gateway, settings: Settings) -> _Addresses:
    """Return the usable addresses that a Gateway asks for."""
    found = set()
    for one in gateway.spec.addresses:
        address = read_address(one.value or "") if one.type == "IPAddress" else None
        if address is None or not is_bound(one.value or "", settings):
            continue
        if address.is_unspecified:
            return _ALL
        found.add(str(address))
    return frozenset(found)


def _every(settings: Settings) -> _Addresses:
    """Return what --bind names; all where it names none, or a wildcard, or a text that is no plain address."""
    read = [read_address(one) for one in settings.addresses]
    if any(one is None or one.is_unspecified for one in read):
        return _ALL
    return frozenset(str(one) for one in read)


def _join(sets: Mapping[_Addresses, None]) -> list[_Addresses]:
    """Join those that overlap."""
    if _ALL in sets:
        return []
    joined: list[_Addresses] = []
    for one in sets:
        for other in [each for each in joined if each & one]:
            joined.remove(other)
            one |= other
        joined.append(one)
    return joined
