"""Snapshot: all objects at one moment, by kind and by (namespace, name).

In: loaded objects. Out: an immutable index; `replace` gives the next one and shares what did not
change. "Same object" therefore means "nothing changed" to callers that cache by identity. Undefined
namespaces are present all the same, labelled as the API server would.
Must never: be mutated, resolve a reference, or keep two objects of one name (the first wins).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from edgefast.api.core.clustertrustbundle import ClusterTrustBundle
from edgefast.api.core.configmap import ConfigMap
from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.core.namespace import Namespace, implicit_namespace, label_namespace
from edgefast.api.core.secret import Secret
from edgefast.api.core.selected_pod import SelectedPods
from edgefast.api.core.service import Service
from edgefast.api.edge.backend import Backend
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.httproutefilter import HTTPRouteFilter
from edgefast.api.edge.ratelimitfilter import RateLimitFilter
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicy
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.gatewayclass import GatewayClass
from edgefast.api.gateway.grpcroute import GRPCRoute
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.gateway.layer4_route import AnyRoute, TCPRoute, TLSRoute, UDPRoute
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.gateway.referencegrant import ReferenceGrant
from edgefast.api.gateway.xbackend import XBackend
from edgefast.api.gateway.xbackendtrafficpolicy import XBackendTrafficPolicy
from edgefast.api.ingress.ingress import Ingress
from edgefast.api.ingress.ingressclass import IngressClass
from edgefast.api.kinds import Object, info_of
from edgefast.api.loaded import Loaded, Refused
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap
from edgefast.diagnostics.problem import ObjectRef, Problem, Source

#: (namespace, name); the namespace of cluster-scoped objects is "".
Key = tuple[str, str]

_TABLES: dict[str, str] = {
    "GatewayClass": "gateway_classes",
    "Gateway": "gateways",
    "HTTPRoute": "http_routes",
    "GRPCRoute": "grpc_routes",
    "TLSRoute": "tls_routes",
    "TCPRoute": "tcp_routes",
    "UDPRoute": "udp_routes",
    "ListenerSet": "listener_sets",
    "ReferenceGrant": "reference_grants",
    "BackendTLSPolicy": "backend_tls_policies",
    "Service": "services",
    "EndpointSlice": "endpoint_slices",
    "Secret": "secrets",
    "ConfigMap": "config_maps",
    "ClusterTrustBundle": "cluster_trust_bundles",
    "Namespace": "namespaces",
    "EdgeProxy": "edge_proxies",
    "RateLimitFilter": "rate_limit_filters",
    "Backend": "backends",
    "SecurityPolicy": "security_policies",
    "BackendTrafficPolicy": "backend_traffic_policies",
    "XBackend": "x_backends",
    "XBackendTrafficPolicy": "x_backend_traffic_policies",
    "HTTPRouteFilter": "http_route_filters",
    "Ingress": "ingresses",
    "IngressClass": "ingress_classes",
}


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An immutable index of objects; build with `of`, go on with `replace`."""

    gateway_classes: SortedMap[Key, GatewayClass] = EMPTY
    gateways: SortedMap[Key, Gateway] = EMPTY
    http_routes: SortedMap[Key, HTTPRoute] = EMPTY
    grpc_routes: SortedMap[Key, GRPCRoute] = EMPTY
    tls_routes: SortedMap[Key, TLSRoute] = EMPTY
    tcp_routes: SortedMap[Key, TCPRoute] = EMPTY
    udp_routes: SortedMap[Key, UDPRoute] = EMPTY
    listener_sets: SortedMap[Key, ListenerSet] = EMPTY
    reference_grants: SortedMap[Key, ReferenceGrant] = EMPTY
    backend_tls_policies: SortedMap[Key, BackendTLSPolicy] = EMPTY
    services: SortedMap[Key, Service] = EMPTY
    endpoint_slices: SortedMap[Key, EndpointSlice] = EMPTY
    secrets: SortedMap[Key, Secret] = EMPTY
    config_maps: SortedMap[Key, ConfigMap] = EMPTY
    cluster_trust_bundles: SortedMap[Key, ClusterTrustBundle] = EMPTY
    namespaces: SortedMap[Key, Namespace] = EMPTY
    edge_proxies: SortedMap[Key, EdgeProxy] = EMPTY
    rate_limit_filters: SortedMap[Key, RateLimitFilter] = EMPTY
    backends: SortedMap[Key, Backend] = EMPTY
    security_policies: SortedMap[Key, SecurityPolicy] = EMPTY
    backend_traffic_policies: SortedMap[Key, BackendTrafficPolicy] = EMPTY
    x_backends: SortedMap[Key, XBackend] = EMPTY
    x_backend_traffic_policies: SortedMap[Key, XBackendTrafficPolicy] = EMPTY
    http_route_filters: SortedMap[Key, HTTPRouteFilter] = EMPTY
    ingresses: SortedMap[Key, Ingress] = EMPTY
    ingress_classes: SortedMap[Key, IngressClass] = EMPTY
    #: EndpointSlices by (namespace, Service), each tuple sorted by name.
    slices_by_service: SortedMap[Key, tuple[EndpointSlice, ...]] = EMPTY
    #: Pods by (namespace, selector of an XBackend); the controller's cache writes it, no document does.
    pods: SortedMap[Key, SelectedPods] = EMPTY
    #: (kind, namespace, name) -> where it came from; only objects from files are in it.
    loaded: SortedMap[tuple[str, str, str], Loaded] = EMPTY
    #: (kind, namespace, name) -> what is known of an object of a file that a mistake keeps out of here.
    refused: Mapping[tuple[str, str, str], Refused] = {}
    #: Whether there is a file that could not be had whole: what is not here may be in it.
    unread: bool = False
    #: Policies of other projects in files, which nobody here applies, and BackendTLSPolicies that have a mistake.
    foreign_policies: tuple[ForeignPolicy, ...] = ()

    @property
    def routes(self) -> tuple[SortedMap[Key, AnyRoute], ...]:
        """The routes of every kind, one map for each kind."""
        tables = (
            self.http_routes,
            self.grpc_routes,
            self.tls_routes,
            self.tcp_routes,
            self.udp_routes,
        )
        return cast(tuple[SortedMap[Key, AnyRoute], ...], tables)

    @staticmethod
    def of(items: Iterable[Loaded | Object], previous: Snapshot | None = None) -> Snapshot:
        """Index objects; the first of two with one name wins (see `check_duplicates`).

        With `previous`, an object equal to its predecessor is replaced by it, so identity lasts.
        """
        first: dict[tuple[str, Key], Loaded | Object] = {}
        for item in items:
            obj = item.obj if isinstance(item, Loaded) else item
            first.setdefault((type(obj).__name__, _key(obj)), item)
        if previous is None:
            return Snapshot().replace(changed=first.values())
        return Snapshot().replace(changed=[_keep(item, previous) for item in first.values()])

    def replace(
        self, changed: Iterable[Loaded | Object] = (), removed: Iterable[ObjectRef] = ()
    ) -> Snapshot:
        """Return the next snapshot: `removed` goes first, then `changed` is put in its place.

        Tables without a change are shared. A changed object that equals the present one leaves
        the present one in place.
        """
        return _Replacement(self).apply(changed, removed)

    def get(self, ref: ObjectRef) -> Object | None:
        """Return an object by its reference; the group is not compared."""
        table = _TABLES.get(ref.kind)
        if table is None:
            return None
        found: Object | None = getattr(self, table).get((ref.namespace, ref.name))
        return found

    def names_of(self, kind: str, namespace: str) -> list[str]:
        """Return the names of a kind in a namespace, "" for what is cluster-scoped."""
        table = _TABLES.get(kind)
        return [name for where, name in getattr(self, table) if where == namespace] if table else []

    def namespaces_of(self, kind: str, name: str) -> list[str]:
        """Return the namespaces that have an object of that kind and name."""
        table = _TABLES.get(kind)
        return [where for where, one in getattr(self, table) if one == name] if table else []

    def source_of(self, ref: ObjectRef, path: str = "") -> Source | None:
        """Return the place of an object or of one of its fields, None when it is not from a file."""
        found = self.loaded.get((ref.kind, ref.namespace, ref.name))
        if found is None:
            return None
        return found.source_at(path) if path else found.source


def check_duplicates(items: Iterable[Loaded]) -> tuple[Problem, ...]:
    """Report every object whose kind, namespace and name another one before it has."""
    first: dict[tuple[str, Key], Loaded] = {}
    problems = []
    for item in items:
        winner = first.setdefault((type(item.obj).__name__, _key(item.obj)), item)
        if winner is not item:
            problems.append(
                Problem(
                    object=item.ref,
                    path="metadata.name",
                    reason="Duplicate",
                    message=f'"{item.obj.metadata.name}" (first defined at {winner.source})',
                    source=item.source_at("metadata.name"),
                )
            )
    return tuple(problems)


class _Replacement:
    """The tables of the next snapshot; those that nothing is written to stay the same."""

    def __init__(self, old: Snapshot) -> None:
        self._old = old
        self._tables: dict[str, Draft[Any, Any]] = {}

    def apply(self, changed: Iterable[Loaded | Object], removed: Iterable[ObjectRef]) -> Snapshot:
        for ref in removed:
            self._remove(ref)
        for item in changed:
            self._put(item)
        made = {name: table.done() for name, table in self._tables.items()}
        return msgspec.structs.replace(self._old, **made) if made else self._old

    def _read(self, table: str) -> SortedMap[Any, Any] | Draft[Any, Any]:
        present: SortedMap[Any, Any] = getattr(self._old, table)
        return self._tables.get(table, present)

    def _write(self, table: str) -> Draft[Any, Any]:
        if table not in self._tables:
            present: SortedMap[Any, Any] = getattr(self._old, table)
            self._tables[table] = present.edit()
        return self._tables[table]

    def _remove(self, ref: ObjectRef) -> None:
        table, key = _TABLES.get(ref.kind), (ref.namespace, ref.name)
        if table is None or key not in self._read(table):
            return
        if (ref.kind, *key) in self._read("loaded"):
            del self._write("loaded")[(ref.kind, *key)]
        if table == "namespaces":
            # The name lives on: objects may still be in it.
            self._write(table)[key] = implicit_namespace(ref.name)
            return
        gone = self._write(table).pop(key, None)
        if isinstance(gone, EndpointSlice):
            self._index_slice(gone, None)

    def _put(self, item: Loaded | Object) -> None:
        obj = item.obj if isinstance(item, Loaded) else item
        kind, key = type(obj).__name__, _key(obj)
        if isinstance(obj, Namespace):
            obj = label_namespace(obj)
        table = _TABLES[kind]
        present = self._read(table).get(key)
        if isinstance(item, Loaded):
            self._write("loaded")[(kind, *key)] = item
        elif (kind, *key) in self._read("loaded"):
            del self._write("loaded")[(kind, *key)]
        if present is obj or present == obj:
            return
        self._write(table)[key] = obj
        if isinstance(obj, EndpointSlice):
            self._index_slice(present, obj)
        if key[0] and ("", key[0]) not in self._read("namespaces"):
            self._write("namespaces")[("", key[0])] = implicit_namespace(key[0])

    def _index_slice(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        if old is not None and old.service_name:
            self._set_slices(old, [one for one in self._slices(old) if one is not old])
        if new is not None and new.service_name:
            kept = [*self._slices(new), new]
            self._set_slices(new, sorted(kept, key=lambda one: one.metadata.name))

    def _slices(self, of: EndpointSlice) -> tuple[EndpointSlice, ...]:
        key = (of.metadata.namespace, of.service_name)
        present: tuple[EndpointSlice, ...] = self._read("slices_by_service").get(key, ())
        return present

    def _set_slices(self, of: EndpointSlice, slices: list[EndpointSlice]) -> None:
        key, index = (
            (of.metadata.namespace, of.service_name),
            self._write("slices_by_service"),
        )
        if slices:
            index[key] = tuple(slices)
        else:
            index.pop(key, None)


def _key(obj: Object) -> Key:
    meta = obj.metadata
    return (meta.namespace if info_of(obj).namespaced else "", meta.name)


def _keep(item: Loaded | Object, previous: Snapshot) -> Loaded | Object:
    obj = item.obj if isinstance(item, Loaded) else item
    table: Mapping[Key, Object] = getattr(previous, _TABLES[type(obj).__name__])
    old = table.get(_key(obj))
    if old is None or old is obj or old != obj:
        return item
    if isinstance(item, Loaded):
        return Loaded(obj=old, file=item.file, marks=item.marks)
    return old
