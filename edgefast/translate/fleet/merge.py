"""Merge: conflicts of listeners on one port of one fleet, inside a Gateway and across Gateways.

In: the drafts of all Gateways, oldest first. Out: the same drafts with conflicts marked and ports
assigned. Inside a Gateway all parties of a conflict lose (Gateway API). A listener of a ListenerSet
loses to whatever comes before it and to nothing else (ListenerSetSpec.listeners). Across the
Gateways of a fleet the first holder of (port, protocol, hostname) wins, where their addresses
overlap (bound_at.py). This also applies while the holder is not served: its hostname stays reserved
(reserved_hostnames.py). Spec section 4, rule 1. A listener without a hostname reserves nothing that
way. A TCP or UDP listener reserves its port that way, because its clients send no name. TLS
versions, client verification and HTTP limits belong to the port, because a handshake begins before
its server name is known. Later Gateways must agree or lose.
Must never: serve a listener with weaker client verification than it requires.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from edgefast.translate.fleet.bound_at import Addresses, group_by_address, overlap, settle_addresses
from edgefast.translate.fleet.fleet import container_port, fleet_name
from edgefast.translate.fleet.reserved_hostnames import (
    reserve_hostnames,
    reserves_hostname,
    reserves_port,
)
from edgefast.translate.gateway.fail_closed import warn_closed
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft, PortKey
from edgefast.translate.gateway.protocol import is_stream
from edgefast.translate.match.hostname import ANY
from edgefast.translate.settings import Settings

_TUPLE = "port, protocol and hostname must be unique for every listener"
_NAMED = 5  # names in a message before it says "and more"


def merge_gateways(drafts: Iterable[GatewayDraft], settings: Settings) -> None:
    """Assign fleets and ports, and mark every conflict on the drafts' listeners."""
    fleets: dict[str, list[GatewayDraft]] = defaultdict(list)
    for draft in drafts:
        draft.fleet = fleet_name(draft, settings)
        for one in draft.listeners:
            one.bind_port = container_port(one.port, settings)
        fleets[draft.fleet].append(draft)
    for members in fleets.values():
        requested = group_by_address(members, settings)
        for draft in members:
            _mark_own_conflicts(draft)
            _mark_set_conflicts(draft)
        ports: dict[PortKey, _Port] = {}
        reserved = _Reserved()
        for draft in members:
            _reserve_ports(draft, ports, reserved, requested.get(draft.key, frozenset()))
        _mark_overlaps(members)
        _raise_versions(members)
        reserve_hostnames(members)
        settle_addresses(members, requested, settings)
        _report_closed(members)


class _Port:
    """What the first Gateway on a port has settled."""

    def __init__(self, holder: GatewayDraft, first: ListenerDraft) -> None:
        self.holder = holder
        self.first = first
        self.shake = first  # of TLS that is terminated, the first
        self.hosts: dict[str, ListenerDraft] = {}
        self.addresses: dict[Addresses, str] = {}  # and the Gateway that has them


class _Reserved:
    """What Gateways have kept so far although they are not served there, by the listener it is of."""

    def __init__(self) -> None:
        self.hosts: dict[tuple[PortKey, str], ListenerDraft] = {}
        self.alone: dict[PortKey, ListenerDraft] = {}  # ports that are nobody else's at all
        self.named: dict[PortKey, ListenerDraft] = {}  # ports with names that stay somebody's

    def add(self, one: ListenerDraft, ports: Mapping[PortKey, _Port]) -> None:
        """Keep what is a listener's; not a port that somebody has whom it could not have stood beside."""
        if reserves_hostname(one, from_equals=True):
            self.hosts.setdefault((one.place, one.hostname), one)
            self.named.setdefault(one.place, one)
        elif reserves_port(one) and one.bound not in ports:
            self.alone.setdefault(one.place, one)

    def refuse(self, one: ListenerDraft, ports: Mapping[PortKey, _Port]) -> bool:
        """Mark the conflict of a listener with what is kept, and tell whether there is one."""
        owner = self.alone.get(one.place)
        if owner is None and one.alone and one.bound not in ports:
            owner = self.named.get(one.place)
        if owner is not None and owner.family != one.family:
            rival = _rival(one, owner)
            message = f"port {one.port} belongs to {rival} with protocol {owner.spec.protocol}, which is not served"
            one.conflict("ProtocolConflict", message)
            return True
        owner = owner or self.hosts.get((one.place, one.hostname))
        if owner is not None:
            message = f"{_same(one, _rival(one, owner))}, which is not served: {_TUPLE}"
            one.conflict("HostnameConflict", message)
        return owner is not None


def _same(one: ListenerDraft, rival: str) -> str:
    """Return a text with the conflicting hostname and the other listener."""
    host = f'hostname "{one.spec.hostname}"' if one.spec.hostname else "no hostname"
    return f"port {one.port} with {host}: same as {rival}"


def _rival(one: ListenerDraft, owner: ListenerDraft) -> str:
    """Name an owner to whom it concerns; a set is not told whose the place is."""
    return f"listener {owner.name}" if one.set is None else "a listener of another Gateway"


def _mark_own_conflicts(draft: GatewayDraft) -> None:
    ports: dict[PortKey, list[ListenerDraft]] = defaultdict(list)
    for one in draft.own_listeners:
        if one.known and not one.unread:
            ports[one.place].append(one)
    for (_, port, _), group in ports.items():
        protocols = sorted({one.spec.protocol for one in group})
        if len({one.family for one in group}) > 1:
            for one in group:
                message = f"port {port} is used with {' and '.join(protocols)}"
                one.conflict("ProtocolConflict", message, lost=False)
            continue
        hosts: dict[str, list[ListenerDraft]] = defaultdict(list)
        for one in group:
            hosts[one.hostname].append(one)
        for rivals in hosts.values():
            for one in rivals if len(rivals) > 1 else ():
                names = _names(rival.spec.name for rival in rivals if rival is not one)
                message = f"{_same(one, f'listener {names}')}: {_TUPLE}"
                one.conflict("HostnameConflict", message, lost=False)


def _mark_set_conflicts(draft: GatewayDraft) -> None:
    """Let each listener of a ListenerSet have what nobody before it has; nobody before it is named to it."""
    first: dict[PortKey, ListenerDraft] = {}
    hosts: set[tuple[PortKey, str]] = set()
    named: set[PortKey] = set()  # ports with names of listeners that are not served
    for one in draft.listeners:
        if one.set is not None:
            taken = first.get(one.place, one)
            if taken.family != one.family:
                message = f"port {one.port} is {taken.spec.protocol} on the Gateway"
                one.conflict("ProtocolConflict", message)
            elif (one.place, one.hostname) in hosts:
                message = f"{_same(one, 'another listener of the Gateway')}: {_TUPLE}"
                one.conflict("HostnameConflict", message)
            elif one.alone and one.place in named and one.place not in first:
                message = f"another listener of the Gateway, which is not served, has a hostname on port {one.port}"
                one.conflict("ProtocolConflict", message)
        # Of the Gateway's own, one that conflicts keeps its place too.
        sound = one.accepted and not one.unread
        if one.known and (sound or one.set is None):
            first.setdefault(one.place, one)
            hosts.add((one.place, one.hostname))
        elif reserves_hostname(one, from_equals=True):
            hosts.add((one.place, one.hostname))
            named.add(one.place)
        elif one.known and reserves_port(one):
            first.setdefault(one.place, one)
            hosts.add((one.place, one.hostname))


def _reserve_ports(
    draft: GatewayDraft,
    ports: dict[PortKey, _Port],
    reserved: _Reserved,
    addresses: Addresses,
) -> None:
    """Give each listener its place; `reserved` is what Gateways before it keep, and what this one does."""
    for one in draft.listeners:
        if draft.report.refused or not one.accepted or one.unread or one.unbound:
            continue
        if reserved.refuse(one, ports):
            continue
        port = ports.setdefault(one.bound, _Port(draft, one))
        first = port.first
        # A set is not told whose the place is.
        holder = f"Gateway {'/'.join(port.holder.key)}" if one.set is None else "another Gateway"
        if first.port != one.port:
            message = (
                f"port {one.port} needs container port {one.bind_port}, as does port {first.port}"
            )
            one.report.refuse(f"{one.path}.port", "PortUnavailable", message)
        elif first.family != one.family:
            message = f"port {one.port} is {first.spec.protocol} in {holder}"
            one.conflict("ProtocolConflict", message)
        elif one.hostname in port.hosts:
            rival = f"listener {port.hosts[one.hostname].name}"
            rival = rival if one.set is None else f"a listener of {holder}"
            message = f"{_same(one, rival)}: {_TUPLE}"
            one.conflict("HostnameConflict", message)
        elif rivals := [name for each, name in port.addresses.items() if overlap(each, addresses)]:
            with_ = rivals[0] if one.set is None else "another Gateway"
            message = f"port {one.port} is served for {with_}, which has some of the same addresses and others"
            hint = "give both Gateways the same spec.addresses, or addresses with none in common"
            one.report.refuse(f"{one.path}.port", "PortUnavailable", message, hint)
        elif one.tls and port.shake.tls and _verification(one) != _verification(port.shake):
            message = f"port {one.port} has other settings for client verification in {holder}"
            one.report.refuse(f"{one.path}.port", "PortUnavailable", message)
        else:
            port.hosts[one.hostname] = one
            port.addresses.setdefault(addresses, f"Gateway {'/'.join(draft.key)}")
            if port.shake.tls is None:
                port.shake = one
            if draft.parameters.stream != port.holder.parameters.stream and is_stream(
                one.spec.protocol
            ):
                message = f"port {one.port} has the connection settings of {holder}"
                one.report.warn(f"{one.path}.port", "Forbidden", message)
                draft.stream_of_port[one.place] = port.holder.parameters.stream
            if draft.parameters.http != port.holder.parameters.http:
                message = f"port {one.port} has the HTTP settings of {holder}"
                one.report.warn(f"{one.path}.port", "Forbidden", message)
                draft.http_of_port[one.place] = port.holder.parameters.http
    for one in draft.listeners:
        served = one.accepted and not draft.report.refused and not one.unread
        if not served:
            reserved.add(one, ports)


def _report_closed(members: list[GatewayDraft]) -> None:
    """Warn of each Gateway and ListenerSet that only keeps places; whose those are is known now."""
    for draft in members:
        if draft.gateway.closed is not None:
            warn_closed(draft.gateway, draft.report, draft.own_listeners)
        for one in draft.sets:
            if one.listener_set.closed is not None:
                warn_closed(one.listener_set, one.report, one.listeners, allowed=one.allowed)


def _verification(one: ListenerDraft) -> tuple[str, bool]:
    if one.tls is None:
        return ("", False)
    return (one.tls.tls.client_ca, one.tls.tls.client_insecure_fallback)


def _mark_overlaps(members: list[GatewayDraft]) -> None:
    """Note on HTTPS listeners of a port whose hostnames others cover too (OverlappingTLSConfig)."""
    ports: dict[PortKey, dict[str, ListenerDraft]] = defaultdict(dict)
    for draft in members:
        for one in draft.listeners:
            if one.tls is not None and one.accepted:
                ports[one.place][one.hostname] = one
    for hosts in ports.values():
        for hostname, one in hosts.items():
            for wider in _wider(hostname):
                if wider in hosts:
                    one.overlaps.append(hosts[wider].name)
                    hosts[wider].overlaps.append(one.name)


def _wider(hostname: str) -> Iterable[str]:
    """Give the wildcards above a hostname, then "*"."""
    if hostname == ANY:
        return
    rest = hostname.removeprefix("*.")
    while "." in rest:
        rest = rest.split(".", 1)[1]
        yield f"*.{rest}"
    yield ANY


def _raise_versions(members: list[GatewayDraft]) -> None:
    """Give all HTTPS listeners of a port the highest of their lowest TLS versions."""
    https = [one for draft in members for one in draft.listeners if one.tls and one.accepted]
    strict = {one.place for one in https if one.tls and one.tls.tls.min_version == "1.3"}
    for one in https:
        assert one.tls is not None
        if one.place in strict and one.tls.tls.min_version != "1.3":
            tls = msgspec.structs.replace(one.tls.tls, min_version="1.3")
            one.tls = msgspec.structs.replace(one.tls, tls=tls)
            message = f"port {one.port} accepts only TLS 1.3 because another listener of the port requires it"
            one.report.warn(f"{one.path}.tls.options", "Forbidden", message)


def _names(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:_NAMED]) + (" and more" if len(found) > _NAMED else "")
