"""Lookup: reads Services, Secrets and ConfigMaps for Ingresses, and records what was read.

In: a snapshot. Out: objects, and `reads` to compare with the next snapshot.
Must never: return an object without a record of it; the next translation would miss its change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgefast.api.core.configmap import ConfigMap
from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.core.secret import Secret
from edgefast.api.core.service import Service, ServicePort
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.snapshot import Key, Snapshot

#: (table of the snapshot, key) -> what was found there.
Reads = Mapping[tuple[str, Key], object]


class Lookup:
    """Objects of one snapshot, with a record of what was asked for."""

    def __init__(
        self, snapshot: Snapshot, assumed: Iterable[tuple[Key, tuple[str, ...]]] = ()
    ) -> None:
        """`assumed`: Secrets that are not there, with the names of their certificates."""
        self._snapshot = snapshot
        self._assumed = dict(assumed)
        self.reads: dict[tuple[str, Key], object] = {}
        self._names: dict[Key, tuple[str, ...] | None] = {}

    def _read(self, table: str, key: Key) -> Any:
        found = getattr(self._snapshot, table).get(key)
        self.reads[table, key] = found
        return found

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

    def has_tls_policy(self, key: Key) -> bool:
        """Tell whether a BackendTLSPolicy names a Service."""
        self.reads["backend_tls_policies", ("", "")] = self._snapshot.backend_tls_policies
        return any(
            one.metadata.namespace == key[0]
            and any((ref.kind, ref.name) == ("Service", key[1]) for ref in one.spec.target_refs)
            for one in self._snapshot.backend_tls_policies.values()
        )

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
        if key not in self._names:
            self._names[key] = self._read_names(key)
        return self._names[key]

    def _read_names(self, key: Key) -> tuple[str, ...] | None:
        secret = self.secret(key)
        if secret is None:
            return self._assumed.get(key)
        from edgefast.translate.tls.certificate import parse_pair  # 25 ms, only with certificates

        chain, private = secret.value("tls.crt"), secret.value("tls.key")
        if not chain or not private:
            return None
        pair = parse_pair(chain, private)
        return None if isinstance(pair, str) else pair.names


def is_same(reads: Reads, snapshot: Snapshot) -> bool:
    """Tell whether everything that was read is the same object in another snapshot."""
    for (table, key), found in reads.items():
        present = getattr(snapshot, table)
        if (present if key == ("", "") else present.get(key)) is not found:
            return False
    return True


def covers(names: tuple[str, ...], host: str) -> bool:
    """Tell whether a certificate with these names covers a host: by itself, or by a wildcard of one label."""
    return host in names or f"*.{host.partition('.')[2]}" in names
