"""Status: the `status` that the controller writes for every object that it serves.

In: the outcomes of the other stages. Out: Structs with the field names of the Gateway API. They can
be compared, printed and applied. Fields that the API requires are always present.
Must never: hold a time, or the entries of other controllers (the writer keeps those).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from edgefast.api.gateway.listener import RouteGroupKind
from edgefast.api.ingress.ingress import NETWORKING_GROUP
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP
from edgefast.api.model.reference import GATEWAY_GROUP, ParentReference
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.conditions.condition import Condition

Key = tuple[str, str]

#: Groups of kinds that have a status, but for that of the Gateway API.
_GROUPS = {
    "SecurityPolicy": EDGE_GROUP,
    "BackendTrafficPolicy": EDGE_GROUP,
    "XBackend": EXPERIMENTAL_GROUP,
    "Ingress": NETWORKING_GROUP,
    "XBackendTrafficPolicy": EXPERIMENTAL_GROUP,
}


class Status(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """Root of every status."""


class SupportedFeature(Status, frozen=True, kw_only=True):
    """One entry of `supportedFeatures`."""

    name: str


class GatewayClassStatus(Status, frozen=True, kw_only=True):
    """`status` of a GatewayClass."""

    conditions: tuple[Condition, ...]
    supported_features: tuple[SupportedFeature, ...] = ()


class GatewayStatusAddress(Status, frozen=True, kw_only=True):
    """An address that clients can reach."""

    type: str
    value: str


class RouteKind(Status, frozen=True, kw_only=True):
    """One entry of `supportedKinds`; both fields are always written."""

    group: str
    kind: str

    @staticmethod
    def of(kind: RouteGroupKind) -> RouteKind:
        """Take over an entry of `allowedRoutes.kinds`."""
        return RouteKind(group=kind.group, kind=kind.kind)


class ListenerStatus(Status, frozen=True, kw_only=True):
    """Status of one listener."""

    name: str
    supported_kinds: tuple[RouteKind, ...]
    attached_routes: int
    conditions: tuple[Condition, ...]


class GatewayStatus(Status, frozen=True, kw_only=True):
    """`status` of a Gateway."""

    addresses: tuple[GatewayStatusAddress, ...] = ()
    conditions: tuple[Condition, ...]
    listeners: tuple[ListenerStatus, ...] = ()
    attached_listener_sets: int = 0


class RouteParentStatus(Status, frozen=True, kw_only=True):
    """What one parent thinks of a route."""

    parent_ref: ParentReference
    controller_name: str
    conditions: tuple[Condition, ...]


class RouteStatus(Status, frozen=True, kw_only=True):
    """`status` of a route: our entries of `parents`."""

    parents: tuple[RouteParentStatus, ...]


class PolicyAncestorStatus(Status, frozen=True, kw_only=True):
    """What a policy comes to at one Gateway."""

    ancestor_ref: ParentReference
    controller_name: str
    conditions: tuple[Condition, ...]


class PolicyStatus(Status, frozen=True, kw_only=True):
    """`status` of a policy: our entries of `ancestors`, at most 16 by the API."""

    ancestors: tuple[PolicyAncestorStatus, ...]


class ListenerSetStatus(Status, frozen=True, kw_only=True):
    """`status` of a ListenerSet; without listeners when its Gateway does not allow it."""

    conditions: tuple[Condition, ...]
    listeners: tuple[ListenerStatus, ...] = ()


class IngressAddress(Status, frozen=True, kw_only=True):
    """An address that serves an Ingress: one of `ip` and `hostname`."""

    ip: str = ""
    hostname: str = ""


class IngressLoadBalancerStatus(Status, frozen=True, kw_only=True):
    """`status.loadBalancer` of an Ingress."""

    ingress: tuple[IngressAddress, ...] = ()


class IngressStatus(Status, frozen=True, kw_only=True):
    """`status` of an Ingress."""

    load_balancer: IngressLoadBalancerStatus = IngressLoadBalancerStatus()


AnyStatus = (
    GatewayClassStatus
    | GatewayStatus
    | RouteStatus
    | PolicyStatus
    | ListenerSetStatus
    | IngressStatus
)


class Statuses(msgspec.Struct, frozen=True, kw_only=True):
    """Every status by (namespace, name); objects of other controllers are not in it."""

    gateway_classes: dict[Key, GatewayClassStatus] = {}
    gateways: dict[Key, GatewayStatus] = {}
    listener_sets: dict[Key, ListenerSetStatus] = {}
    http_routes: Mapping[Key, RouteStatus] = {}
    grpc_routes: Mapping[Key, RouteStatus] = {}
    tls_routes: Mapping[Key, RouteStatus] = {}
    tcp_routes: Mapping[Key, RouteStatus] = {}
    udp_routes: Mapping[Key, RouteStatus] = {}
    backend_tls_policies: dict[Key, PolicyStatus] = {}
    security_policies: Mapping[Key, PolicyStatus] = {}
    backend_traffic_policies: Mapping[Key, PolicyStatus] = {}
    x_backends: Mapping[Key, PolicyStatus | RouteStatus] = {}  # with ancestors, or as v1.6 has them
    x_backend_traffic_policies: Mapping[Key, PolicyStatus] = {}
    ingresses: Mapping[Key, IngressStatus] = {}  # only in a cluster
    #: Those of Gateways that edgefast made to serve Ingresses, from files; they are written nowhere.
    made_gateways: dict[Key, GatewayStatus] = {}
    #: The Gateway of each ListenerSet of ours; no part of any status.
    parents: dict[Key, Key] = {}

    def closed_listeners(self) -> frozenset[str]:
        """Return the listeners that are not programmed, under the names that the data plane knows them by."""
        gateways = (*self.gateways.items(), *self.made_gateways.items())
        found = {f"{'/'.join(key)}/": one.listeners for key, one in gateways}
        for key, of_set in self.listener_sets.items():
            found[f"{'/'.join((*self.parents[key], *key))}/"] = of_set.listeners
        return frozenset(
            f"{owner}{one.name}"
            for owner, listeners in found.items()
            for one in listeners
            if any(
                message.type == "Programmed" and message.status != "True"
                for message in one.conditions
            )
        )

    def items(self) -> Iterator[tuple[ObjectRef, AnyStatus]]:
        """Give every status with the object it belongs to, kind by kind and sorted by namespace and name."""
        tables: tuple[tuple[str, dict[Key, AnyStatus]], ...] = (
            ("GatewayClass", dict(self.gateway_classes)),
            ("Gateway", dict(self.gateways)),
            ("ListenerSet", dict(self.listener_sets)),
            ("HTTPRoute", dict(self.http_routes)),
            ("GRPCRoute", dict(self.grpc_routes)),
            ("TLSRoute", dict(self.tls_routes)),
            ("TCPRoute", dict(self.tcp_routes)),
            ("UDPRoute", dict(self.udp_routes)),
            ("BackendTLSPolicy", dict(self.backend_tls_policies)),
            ("SecurityPolicy", dict(self.security_policies)),
            ("BackendTrafficPolicy", dict(self.backend_traffic_policies)),
            ("XBackend", dict(self.x_backends)),
            ("XBackendTrafficPolicy", dict(self.x_backend_traffic_policies)),
            ("Ingress", dict(self.ingresses)),
        )
        for kind, table in tables:
            group = _GROUPS.get(kind, GATEWAY_GROUP)
            for namespace, name in sorted(table):
                yield ObjectRef(kind, namespace, name, group), table[namespace, name]
