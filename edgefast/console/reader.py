"""Reader: decodes a table's resources to the fleet from which they were compiled; decodes only changed ones again.

In: resources.
Out: ir.Fleet of all readable resources, without secrets; the reason for each unreadable one.
Must never: trust unchecked bytes (table.decode checks them), or let one resource prevent the
decoding of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from edgefast import ir
from edgefast.diagnostics.problem import Problem
from edgefast.table import Resource, decode_virtual_host
from edgefast.table.shards import Key

_LISTENER: msgspec.msgpack.Decoder[ir.Listener] = msgspec.msgpack.Decoder(ir.Listener)
_STREAM: msgspec.msgpack.Decoder[ir.StreamRoute] = msgspec.msgpack.Decoder(ir.StreamRoute)
_POLICY: msgspec.msgpack.Decoder[ir.PolicyUnit] = msgspec.msgpack.Decoder(ir.PolicyUnit)
_CLUSTER: msgspec.msgpack.Decoder[ir.Cluster] = msgspec.msgpack.Decoder(ir.Cluster)

_Pieces = dict[str, list[Resource]]


class Reader:
    """Reads a table's resources back into a fleet, and decodes only changed ones again.

    One thread at a time.
    """

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[tuple[str, ...], ir.VirtualHost]] = {}
        self._clusters: dict[str, tuple[str, ir.Cluster]] = {}
        self.unread: dict[Key, str] = {}  # of the fleet read last: what is not in it, and why

    def read(self, resources: Mapping[Key, Resource], name: str = "") -> ir.Fleet:
        """Return the fleet; what is kept for the next time is this one's."""
        self.unread = {}
        listeners: list[ir.Listener] = []
        streams: list[ir.StreamRoute] = []
        policies: list[ir.PolicyUnit] = []
        roots: dict[str, Resource] = {}
        fragments: _Pieces = {}
        clusters: dict[str, tuple[str, ir.Cluster]] = {}
        for (type_, key), one in resources.items():
            match type_:
                case "listener":
                    with self._noting("listener", key):
                        listeners.append(_LISTENER.decode(one.data))
                case "stream_route":
                    with self._noting("stream_route", key):
                        streams.append(_STREAM.decode(one.data))
                case "cluster":
                    known = self._clusters.get(key)
                    with self._noting("cluster", key):
                        if known is None or known[0] != one.version:
                            known = (one.version, _CLUSTER.decode(one.data))
                        clusters[key] = known
                case "policy":
                    with self._noting("policy", key):
                        policies.append(_POLICY.decode(one.data))
                case "virtual_host":
                    roots[key] = one
                case "fragment":
                    fragments.setdefault(key.rpartition("#")[0], []).append(one)
        hosts: dict[str, tuple[tuple[str, ...], ir.VirtualHost]] = {}
        for key in sorted(roots):
            with self._noting("virtual_host", key):
                hosts[key] = self._read_host(key, roots[key], fragments)
        self._hosts, self._clusters = hosts, clusters
        return ir.Fleet(
            name=name,
            listeners=tuple(sorted(listeners, key=lambda one: one.name)),
            virtual_hosts=tuple(host for _, host in hosts.values()),
            stream_routes=tuple(sorted(streams, key=lambda one: (one.listener, one.hostname))),
            clusters=tuple(clusters[key][1] for key in sorted(clusters)),
            policies=tuple(sorted(policies, key=lambda one: one.name)),
        )

    def problems(self) -> Iterator[Problem]:
        """Yield what is not in the fleet that was read last."""
        for (type_, name), why in self.unread.items():
            yield Problem(None, "", "Invalid", f"{type_} {name} of the table cannot be read: {why}")

    @contextmanager
    def _noting(self, type_: str, name: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:  # BlobError, msgspec's and those of text are kinds of it
            self.unread[type_, name] = str(error)

    def _read_host(
        self, key: str, root: Resource, fragments: _Pieces
    ) -> tuple[tuple[str, ...], ir.VirtualHost]:
        parts = sorted(fragments.get(key, ()), key=lambda one: one.name)
        versions = (root.version, *(one.version for one in parts))
        known = self._hosts.get(key)
        if known is not None and known[0] == versions:
            return known
        return versions, decode_virtual_host(root.data, [one.data for one in parts])
