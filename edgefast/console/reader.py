"""Reader: resources of a table -> the fleet that they were compiled from, reading again only what changed.

In: resources. Out: ir.Fleet without secrets. Must never: trust bytes that no reader has checked (table.decode does).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgefast import ir
from edgefast.table import Resource, decode_virtual_host
from edgefast.table.shards import Key

_LISTENER: msgspec.msgpack.Decoder[ir.Listener] = msgspec.msgpack.Decoder(ir.Listener)
_CLUSTER: msgspec.msgpack.Decoder[ir.Cluster] = msgspec.msgpack.Decoder(ir.Cluster)

_Pieces = dict[str, list[Resource]]


class Reader:
    """See the module's text. One thread at a time."""

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[tuple[str, ...], ir.VirtualHost]] = {}
        self._clusters: dict[str, tuple[str, ir.Cluster]] = {}

    def read(self, resources: Mapping[Key, Resource], name: str = "") -> ir.Fleet:
        """Return the fleet; what is kept for the next time is this one's. Raises BlobError."""
        listeners: list[ir.Listener] = []
        roots: dict[str, Resource] = {}
        fragments: _Pieces = {}
        clusters: dict[str, tuple[str, ir.Cluster]] = {}
        for (type_, key), one in resources.items():
            match type_:
                case "listener":
                    listeners.append(_LISTENER.decode(one.data))
                case "cluster":
                    known = self._clusters.get(key)
                    if known is None or known[0] != one.version:
                        known = (one.version, _CLUSTER.decode(one.data))
                    clusters[key] = known
                case "virtual_host":
                    roots[key] = one
                case "fragment":
                    fragments.setdefault(key.rpartition("#")[0], []).append(one)
        hosts = {key: self._read_host(key, roots[key], fragments) for key in sorted(roots)}
        self._hosts, self._clusters = hosts, clusters
        return ir.Fleet(
            name=name,
            listeners=tuple(sorted(listeners, key=lambda one: one.name)),
            virtual_hosts=tuple(host for _, host in hosts.values()),
            clusters=tuple(clusters[key][1] for key in sorted(clusters)),
        )

    def _read_host(
        self, key: str, root: Resource, fragments: _Pieces
    ) -> tuple[tuple[str, ...], ir.VirtualHost]:
        parts = sorted(fragments.get(key, ()), key=lambda one: one.name)
        versions = (root.version, *(one.version for one in parts))
        known = self._hosts.get(key)
        if known is not None and known[0] == versions:
            return known
        return versions, decode_virtual_host(root.data, [one.data for one in parts])
