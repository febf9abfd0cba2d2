"""Service: the name and ports that routes refer to, and the addresses of a fleet's own Service.

In: core `v1` documents. Out: `Service`; fields that edgefast does not read are kept unchanged, so
that a file with them is valid.
Source: Kubernetes API reference, Service v1.
Must never: be the source of endpoints; those are EndpointSlices.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import field

from edgefast.api.model.fields import (
    Element,
    FreeObject,
    ObjectName,
    PortNumber,
    Resource,
)
from edgefast.api.model.meta import ObjectMeta


class ServicePort(Element, frozen=True, kw_only=True):
    """A port; `target_port` is a number or a container port's name."""

    name: str = ""
    port: PortNumber
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    target_port: PortNumber | str | None = None
    app_protocol: str | None = None
    node_port: int | None = None


class ServiceSpec(Element, frozen=True, kw_only=True):
    """`spec` of a Service."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"] = "ClusterIP"
    ports: tuple[ServicePort, ...] = ()
    selector: dict[str, str] = field(default_factory=dict)
    cluster_ip: str | None = field(default=None, name="clusterIP")
    cluster_ips: tuple[str, ...] = field(default=(), name="clusterIPs")
    external_name: ObjectName | None = None
    external_ips: tuple[str, ...] = field(default=(), name="externalIPs")
    external_traffic_policy: str | None = None
    internal_traffic_policy: str | None = None
    health_check_node_port: int | None = None
    ip_families: tuple[str, ...] = ()
    ip_family_policy: str | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str | None = field(default=None, name="loadBalancerIP")
    load_balancer_source_ranges: tuple[str, ...] = ()
    allocate_load_balancer_node_ports: bool | None = None
    publish_not_ready_addresses: bool = False
    session_affinity: str | None = None
    session_affinity_config: FreeObject | None = None
    traffic_distribution: str | None = None


class ServicePortStatus(Element, frozen=True, kw_only=True):
    """What a load balancer says of one port."""

    port: int = 0
    protocol: str = "TCP"
    error: str | None = None


class LoadBalancerIngress(Element, frozen=True, kw_only=True):
    """An address of a load balancer: one of `ip` and `hostname`."""

    ip: str | None = None
    hostname: str | None = None
    ip_mode: str | None = None
    ports: tuple[ServicePortStatus, ...] = ()


class LoadBalancerStatus(Element, frozen=True, kw_only=True):
    """The addresses that a load balancer gave."""

    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Element, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """`status` of a Service."""

    #: Known to Kubernetes, read by nobody here.
    unread: ClassVar[frozenset[str]] = frozenset({"conditions"})

    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


class Service(Resource, frozen=True, kw_only=True):
    """A namespaced Service; `addresses` are those that clients reach it at from outside."""

    unread: ClassVar[frozenset[str]] = Resource.unread - {"status"}

    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return what the load balancer gave: IP addresses and host names, in its order."""
        ingress = self.status.load_balancer.ingress
        return tuple(found for one in ingress if (found := one.ip or one.hostname))
