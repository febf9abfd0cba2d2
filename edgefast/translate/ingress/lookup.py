"""Lookup: reads Services, Secrets and ConfigMaps for Ingresses, and records what was read for which host or Ingress.

In: a snapshot. Out: objects, and the facts that were read, by `Owner`. `changed_facts` compares two snapshots.
Must never: return an object without a record of it; the next translation would miss its change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from edgefast.api.core.configmap import ConfigMap
from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.core.secret import Secret
from edgefast.api.core.service import Service, ServicePort
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicy
from edgefast.api.snapshot import Key, Snapshot
from edgefast.collections.sorted_map import find_unlike

#: A table of the snapshot and a key; of TLS, the Service that a BackendTLSPolicy names; of hosts, the host of an auth-url.
Fact = tuple[str, Key]
#: The host or Ingress that depends on a fact: ("host", name), ("Ingress", "namespace/name"), or ALL.
Owner = tuple[str, str]
ALL: Owner = ("", "")

_TABLES = ("services", "secrets", "config_maps", "edge_proxies", "slices_by_service")
#: The table of BackendTLSPolicies by Service.
_TLS = "tls"
#: The table of hosts of Ingresses.
_HOSTS = "hosts"


class LookupIndex:
    """Objects of one snapshot, and what was read of them."""

    def __init__(
        self, snapshot: Snapshot, assumed: Iterable[tuple[Key, tuple[str, ...]]] = ()
    ) -> None:
        """`assumed`: Secrets that are not there, with the names of their certificates."""
        self.snapshot = snapshot
        self.reads: dict[Owner, set[Fact]] = {}
        self.names: dict[Key, tuple[str, ...] | None] = dict(assumed)
        self._tls: frozenset[Key] | None = None

    def of(self, kind: str, name: str = "") -> Lookup:
        """Return the lookup for an owner."""
        return Lookup(self, self.reads.setdefault((kind, name), set()))

    @property
    def tls_services(self) -> frozenset[Key]:
        """The Services that BackendTLSPolicies name."""
        if self._tls is None:
            policies = self.snapshot.backend_tls_policies.values()
            self._tls = frozenset(_services_of(policies))
        return self._tls


class Lookup:
    """Objects of one snapshot, for one owner."""

    def __init__(self, lookups: LookupIndex, reads: set[Fact]) -> None:
        self._lookups = lookups
        self._snapshot = lookups.snapshot
        self._reads = reads

    def _read(self, table: str, key: Key) -> Any:
        self._reads.add((table, key))
        return getattr(self._snapshot, table).get(key)

    def service(self, key: Key) -> Service | None:
        """Return a Service."""
        found: Service | None = self._read("services", key)
        return found

    def secret(self, key: Key) -> Secret | None:
        """Return a Secret."""
        found: Secret | None = self._read("secrets", key)
        return found

    def edge_proxy(self, key: Key) -> EdgeProxy | None:
        """Return an EdgeProxy."""
        found: EdgeProxy | None = self._read("edge_proxies", key)
        return found

    def config_map(self, key: Key) -> ConfigMap | None:
        """Return a ConfigMap."""
        found: ConfigMap | None = self._read("config_maps", key)
        return found

    def note_host(self, host: str) -> None:
        """Record that the locations of a host are read."""
        self._reads.add(host_fact(host))

    def has_tls_policy(self, key: Key) -> bool:
        """Tell whether a BackendTLSPolicy names a Service."""
        self._reads.add((_TLS, key))
        return key in self._lookups.tls_services

    def has_endpoints(self, key: Key, port: ServicePort) -> bool:
        """Tell whether a port of a Service has a ready endpoint."""
        slices: tuple[EndpointSlice, ...] = self._read("slices_by_service", key) or ()
        return any(
            one.conditions.ready is not False and one.addresses
            for part in slices
            if any(each.name == port.name for each in part.ports)
            for one in part.endpoints
        )

    def certificate_names(self, key: Key) -> tuple[str, ...] | None:
        """Return the DNS names of a Secret's certificate, None if it has none that can be used."""
        secret, known = self.secret(key), self._lookups.names
        if key not in known:
            known[key] = None if secret is None else _read_names(secret)
        return known[key]


def _read_names(secret: Secret) -> tuple[str, ...] | None:
    from edgefast.translate.tls.certificate import parse_pair  # 25 ms, only with certificates

    chain, private = secret.value("tls.crt"), secret.value("tls.key")
    if not chain or not private:
        return None
    pair = parse_pair(chain, private)
    return None if isinstance(pair, str) else pair.names


def _services_of(policies: Iterable[BackendTLSPolicy]) -> Iterator[Key]:
    for one in policies:
        for ref in one.spec.target_refs:
            if ref.kind == "Service":
                yield (one.metadata.namespace, ref.name)


def host_fact(host: str) -> Fact:
    """Return the fact of the locations of a host."""
    return (_HOSTS, ("", host))


def changed_facts(before: Snapshot, after: Snapshot) -> Iterator[Fact]:
    """Give the facts in which two snapshots may differ."""
    for table in _TABLES:
        gone, come = find_unlike(getattr(before, table), getattr(after, table))
        for key in {**gone, **come}:
            yield (table, key)
    gone, come = find_unlike(before.backend_tls_policies, after.backend_tls_policies)
    for key in _services_of((*gone.values(), *come.values())):
        yield (_TLS, key)


def covers(names: tuple[str, ...], host: str) -> bool:
    """Tell whether a certificate with these names covers a host: by itself, or by a wildcard of one label."""
    return host in names or f"*.{host.partition('.')[2]}" in names
