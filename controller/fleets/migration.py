"""Migration: a Gateway that leaves a merged fleet is served there until its next fleet takes over.

In: successive outcomes; the observed states of fleets; the pods that serve each table.
Out: the outcome with the Gateway's listeners still in its former fleet, with the hosts, clusters
and secrets of its next fleet, so that edits and endpoints still apply; and the messages about it. A
controller that starts meanwhile did not see the Gateway leave and finds no migration.
Source: spec section 1 (merged Gateways).
Must never: take a port or a hostname from the Gateways of the fleet, or give the fleet resources
that those listeners do not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import TypeVar

import msgspec

from controller.fleets.cutover import find_lack, find_shared
from controller.fleets.migrated_listener import find_migrated_listener, reserve_listener
from controller.pipeline import Outcome
from controller.status.rejections import clusters_of
from edgefast import ir
from edgefast.api.snapshot import Key
from edgefast.table import Shards, compile_fleet
from edgefast.translate.settings import FleetState

__all__ = ["Migration"]

T = TypeVar("T", ir.Listener, ir.Cluster, ir.PolicyUnit, ir.Secret)

#: Seconds that the fleet before goes on when the next one could take over: until all nodes know its pods, and clients its
#: address. As long as a pod that is told to go takes connections by default (EdgeProxy shutdown.minDrainDuration).
LINGER = 10.0
_ALONE = "only one Service can have address {}, so fleet {} released it before this one took over"


class _MigratingGateway(msgspec.Struct, frozen=True):
    """A Gateway in the fleet that it has left, as it was there."""

    host: str  # name of that fleet
    listeners: tuple[ir.Listener, ...] = ()
    ports: tuple[ir.InfraPort, ...] = ()
    address: str = ""  # for which it had to go at once
    ends: float = 0.0  # when it goes; 0: its next fleet lacks something


class Migration:
    """Keeps a Gateway in its old fleet until its new fleet serves it."""

    def __init__(self) -> None:
        #: What a Gateway's next fleet lacks, or why it was not waited for, by that fleet ("namespace/name").
        self.waiting: Mapping[str, tuple[str, ...]] = {}
        self.let_go: Mapping[str, tuple[str, ...]] = {}
        self._migrating: dict[Key, _MigratingGateway] = {}
        self._home: Mapping[Key, str] = {}  # of the outcome before, as the rest
        self._listeners: Mapping[str, Sequence[ir.Listener]] = {}
        self._ports: Mapping[str, tuple[ir.InfraPort, ...]] = {}
        self._shards: dict[str, Shards] = {}  # of fleets with migrating Gateways

    def __bool__(self) -> bool:
        return bool(self._migrating)

    def extend(
        self,
        outcome: Outcome,
        state_of: Callable[[str], FleetState | None],
        serving: Callable[[str, str], Set[str]],
        now: float,
    ) -> Outcome:
        """Return an outcome with its migrating Gateways; `state_of`, `serving` as in find_kept."""
        home = outcome.fleet_of()
        infra = {one.name: one for one in outcome.translation.infra}
        self._welcome(home, infra)
        self._home = home
        self._listeners = {one.name: one.listeners for one in outcome.translation.ir.fleets}
        self._ports = {name: one.ports for name, one in infra.items()}
        had = self._shards
        extended = self._serve(outcome, had)
        guests: dict[Key, _MigratingGateway] = {}
        waiting: dict[str, tuple[str, ...]] = {}
        let_go: dict[str, tuple[str, ...]] = {}
        for gateway, listener in self._migrating.items():
            successor, host = infra[home[gateway]], _key(infra[listener.host])
            key = _key(successor)
            state, before = state_of(key), state_of(host)
            if before is None:
                continue
            if address := listener.address or find_shared(
                successor.service.addresses, before.addresses
            ):
                if state is not None and state.addresses and state.ready:
                    continue
                listener = _MigratingGateway(listener.host, address=address)
                message, reported = _ALONE.format(address, host), let_go
            else:
                nodes = partial(serving, key, extended.shards[successor.name].version)
                if not (missing := find_lack(successor, state, nodes, before)):
                    ends = listener.ends or now + LINGER
                    if now < ends:
                        guests[gateway] = msgspec.structs.replace(listener, ends=ends)
                    continue
                listener = msgspec.structs.replace(listener, ends=0.0)
                name = "/".join(gateway)
                message, reported = (
                    f"fleet {host} serves {name} until this one takes over: {missing}",
                    waiting,
                )
            guests[gateway] = listener
            reported[key] = (*reported.get(key, ()), message)
        self.waiting, self.let_go = waiting, let_go
        served = [(one.host, one.listeners) for one in self._migrating.values()]
        self._migrating = guests
        if served == [(one.host, one.listeners) for one in guests.values()]:
            return extended
        return self._serve(outcome, had)

    def next_end(self) -> float:
        """Return when the next migration ends, 0 if no end is known."""
        return min((one.ends for one in self._migrating.values() if one.ends), default=0.0)

    def _welcome(self, home: Mapping[Key, str], infra: Mapping[str, ir.Infra]) -> None:
        """Note who has left a fleet that there is still; forget whose next fleet or last one is gone, or who is back."""
        for gateway, host in self._home.items():
            successor = home.get(gateway)
            if gateway in self._migrating or successor in (None, host) or host not in infra:
                continue
            place = f"{gateway[0]}/{gateway[1]}/"
            left = tuple(one for one in self._listeners[host] if one.name.startswith(place))
            targets = {(ir.transport_of(one), one.bind_port) for one in left}
            ports = tuple(one for one in self._ports[host] if (one.protocol, one.target) in targets)
            self._migrating[gateway] = _MigratingGateway(host, left, ports)
        for gateway, listener in tuple(self._migrating.items()):
            if home.get(gateway) in (None, listener.host) or listener.host not in infra:
                del self._migrating[gateway]

    def _serve(self, outcome: Outcome, had: Mapping[str, Shards]) -> Outcome:
        """Return the outcome with the present migrations; `had`: earlier tables of fleets with migrations."""
        hosts: dict[str, list[tuple[Key, _MigratingGateway]]] = {}
        for gateway, listener in self._migrating.items():
            hosts.setdefault(listener.host, []).append((gateway, listener))
        self._shards = {}
        if not hosts and not had:
            return outcome
        own = {one.name: one for one in outcome.translation.ir.fleets}
        fleets = dict(own)
        infra = {one.name: one for one in outcome.translation.infra}
        shards = dict(outcome.shards)
        changed = set(outcome.changed) | (had.keys() & shards.keys())
        for host, guests in hosts.items():
            fleet, around = fleets[host], infra[host]
            left: list[ir.Listener] = []
            for gateway, listener in guests:
                fleet, around = _join(fleet, around, listener, own[self._home[gateway]], left)
            fleet = _hold(fleet, left)
            fleets[host], infra[host] = fleet, around
            shards[host] = self._shards[host] = compile_fleet(
                fleet, had.get(host, outcome.shards[host])
            )
            changed.add(host)
        translation = msgspec.structs.replace(
            outcome.translation,
            ir=ir.IR(fleets=tuple(fleets.values())),
            infra=tuple(infra.values()),
        )
        return msgspec.structs.replace(
            outcome, translation=translation, shards=shards, changed=frozenset(changed)
        )


def _key(infra: ir.Infra) -> str:
    return f"{infra.namespace}/{infra.name}"


def _join(
    fleet: ir.Fleet,
    infra: ir.Infra,
    listener: _MigratingGateway,
    successor: ir.Fleet,
    left: list[ir.Listener],
) -> tuple[ir.Fleet, ir.Infra]:
    """Return a fleet and its infra with the listeners of a migrating Gateway that do not conflict.

    `left` receives the others.
    """
    now = {one.name: one for one in successor.listeners}
    hosts, streams, clusters, secrets, units = [], [], {}, {}, {}
    clusters_there = {one.name: one for one in successor.clusters}
    secrets_there = {one.name: one for one in successor.secrets}
    listeners = []
    for one in listener.listeners:
        fits = _is_as_before(one, now.get(one.name)) and find_migrated_listener(
            one, fleet.listeners
        )
        if not fits:
            left.append(one)
            continue
        own = [host for host in successor.virtual_hosts if host.listener == one.name]
        used = {name for host in own for rule in host.rules for name in clusters_of(rule)}
        named = {name for host in own for rule in host.rules for name in rule.units()}
        requested = [unit for unit in successor.policies if unit.name in named.union(one.filters)]
        used |= {name for unit in requested for name in _asked_by(unit)}
        passed = [route for route in successor.stream_routes if route.listener == one.name]
        used |= {share.cluster for route in passed for share in route.backends}
        wanted = [clusters_there[name] for name in sorted(used - {""})]
        keys = {name for name in (*_keys_of(fits), *_keys_behind(wanted)) if name}
        if not keys <= secrets_there.keys():
            left.append(one)
            continue
        listeners.append(fits)
        hosts += own
        streams += passed
        clusters.update({cluster.name: cluster for cluster in wanted})
        units.update({unit.name: unit for unit in requested})
        secrets.update({name: secrets_there[name] for name in keys})
    bound = {(ir.transport_of(one), one.bind_port) for one in listeners}
    there = {(one.protocol, one.port) for one in infra.ports}
    more = [
        one
        for one in listener.ports
        if (one.protocol, one.target) in bound and (one.protocol, one.port) not in there
    ]
    return (
        msgspec.structs.replace(
            fleet,
            listeners=_sorted((*fleet.listeners, *listeners)),
            virtual_hosts=tuple(
                sorted((*fleet.virtual_hosts, *hosts), key=lambda one: (one.listener, one.hostname))
            ),
            stream_routes=tuple(
                sorted(
                    (*fleet.stream_routes, *streams), key=lambda one: (one.listener, one.hostname)
                )
            ),
            clusters=_sorted({**clusters, **{one.name: one for one in fleet.clusters}}.values()),
            secrets=_sorted({**secrets, **{one.name: one for one in fleet.secrets}}.values()),
            policies=_sorted({**units, **{one.name: one for one in fleet.policies}}.values()),
            limit_store=fleet.limit_store or (successor.limit_store if hosts else None),
        ),
        msgspec.structs.replace(
            infra,
            ports=tuple(sorted((*infra.ports, *more), key=lambda one: (one.port, one.protocol))),
        ),
    )


def _asked_by(unit: ir.PolicyUnit) -> Iterator[str]:
    """Give the clusters that a policy asks: services of authorisation, issuers of keys, identity providers."""
    yield from (one.cluster for one in (unit.ext_auth.backends if unit.ext_auth else ()))
    for provider in unit.jwt.providers if unit.jwt else ():
        if provider.remote is not None and provider.remote.cluster:
            yield provider.remote.cluster
    if unit.oidc is not None and unit.oidc.remote.cluster:
        yield unit.oidc.remote.cluster


def _is_as_before(one: ir.Listener, now: ir.Listener | None) -> bool:
    """Tell whether the next fleet has routes for a listener as it was: of its protocol, terminated as it was or not."""
    return now is not None and (now.protocol, now.tls is None) == (one.protocol, one.tls is None)


def _hold(fleet: ir.Fleet, left: Iterable[ir.Listener]) -> ir.Fleet:
    """Return a fleet that reserves the hostnames of migrating listeners that conflict."""
    listeners = fleet.listeners
    for one in left:
        if held := reserve_listener(one, listeners):
            listeners = (*listeners, held)
    if listeners is fleet.listeners:
        return fleet
    return msgspec.structs.replace(fleet, listeners=_sorted(listeners))


def _keys_of(one: ir.Listener) -> tuple[str, ...]:
    return (*one.tls.certificates, one.tls.client_ca) if one.tls else ()


def _keys_behind(clusters: Iterable[ir.Cluster]) -> Iterable[str]:
    return (
        name
        for one in clusters
        if one.tls is not None
        for name in (one.tls.ca, one.tls.certificate)
    )


def _sorted(values: Iterable[T]) -> tuple[T, ...]:
    return tuple(sorted(values, key=lambda one: one.name))
