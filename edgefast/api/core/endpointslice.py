"""EndpointSlice: addresses and ports behind a Service.

In: `discovery.k8s.io/v1` documents. Out: `EndpointSlice`, tied to its Service by the label
`kubernetes.io/service-name`.
Source: Kubernetes API reference, EndpointSlice v1.
Must never: decide readiness; translate reads `conditions`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.model.fields import Element, FreeObject, PortNumber, Resource
from edgefast.api.model.meta import ObjectMeta

SERVICE_NAME_LABEL = "kubernetes.io/service-name"


class EndpointConditions(Element, frozen=True, kw_only=True):
    """None means unknown, to be read as ready (and serving as ready says)."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(Element, frozen=True, kw_only=True):
    """One endpoint; only the first of `addresses` is used, as Kubernetes says."""

    addresses: Annotated[tuple[str, ...], Meta(min_length=1, max_length=100)]
    conditions: EndpointConditions = EndpointConditions()
    hostname: str | None = None
    node_name: str | None = None
    zone: str | None = None
    target_ref: FreeObject | None = None
    hints: FreeObject | None = None
    deprecated_topology: dict[str, str] = field(default_factory=dict)


class EndpointPort(Element, frozen=True, kw_only=True):
    """A port; its name is that of the Service's port."""

    name: str = ""
    port: PortNumber | None = None
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    app_protocol: str | None = None


class EndpointSlice(Resource, frozen=True, kw_only=True):
    """A namespaced slice of a Service's endpoints."""

    metadata: ObjectMeta
    address_type: Literal["IPv4", "IPv6", "FQDN"]
    endpoints: Annotated[tuple[Endpoint, ...], Meta(max_length=1000)] = ()
    ports: Annotated[tuple[EndpointPort, ...], Meta(max_length=100)] = ()

    @property
    def service_name(self) -> str:
        """The Service this slice belongs to, "" when it is not labelled."""
        return self.metadata.labels.get(SERVICE_NAME_LABEL, "")
