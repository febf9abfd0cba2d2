"""Gateway: listeners, addresses, infrastructure and TLS of one entry point.

In: `gateway.networking.k8s.io/v1` or `v1beta1` documents. Out: `Gateway`.
Source: Gateway API v1.6 `gateway_types.go`, experimental channel included.
Must never: merge ListenerSets or resolve references; that is translate's.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.gateway.listener import Listener
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import (
    AnnotationValue,
    Element,
    LabelValue,
    ObjectName,
    PortNumber,
    Resource,
    by_keys,
    refuses,
)
from edgefast.api.model.meta import LabelSelector, ObjectMeta
from edgefast.api.model.reference import (
    LocalParametersReference,
    ObjectReference,
    SecretObjectReference,
)


class GatewaySpecAddress(Element, frozen=True, kw_only=True):
    """A requested address; an absent value asks for any address of that type."""

    type: Annotated[str, Meta(min_length=1, max_length=253)] = "IPAddress"
    value: Annotated[str, Meta(max_length=253)] | None = None


class GatewayInfrastructure(Element, frozen=True, kw_only=True):
    """Labels and annotations for generated objects, and a Gateway's own EdgeProxy."""

    labels: Annotated[dict[str, LabelValue], Meta(max_length=8)] = field(default_factory=dict)
    annotations: Annotated[dict[str, AnnotationValue], Meta(max_length=16)] = field(
        default_factory=dict
    )
    parameters_ref: LocalParametersReference | None = None


class ListenerNamespaces(Element, frozen=True, kw_only=True):
    """Namespaces whose ListenerSets may attach."""

    from_: Literal["All", "Selector", "Same", "None"] = field(default="None", name="from")
    selector: LabelSelector | None = None


class AllowedListeners(Element, frozen=True, kw_only=True):
    """Which ListenerSets may attach to a Gateway: none unless it says so."""

    namespaces: ListenerNamespaces = ListenerNamespaces()


class FrontendTLSValidation(Element, frozen=True, kw_only=True):
    """How client certificates are verified."""

    ca_certificate_refs: Annotated[tuple[ObjectReference, ...], Meta(min_length=1, max_length=16)]
    mode: Literal["AllowValidOnly", "AllowInsecureFallback"] = "AllowValidOnly"


class TLSConfig(Element, frozen=True, kw_only=True):
    """TLS towards clients on one port."""

    validation: FrontendTLSValidation | None = None


class TLSPortConfig(Element, frozen=True, kw_only=True):
    """TLS towards clients on a port that differs from the default."""

    port: PortNumber
    tls: TLSConfig


class FrontendTLSConfig(Element, frozen=True, kw_only=True):
    """TLS towards clients: a default and exceptions by port."""

    default: TLSConfig
    per_port: Annotated[tuple[TLSPortConfig, ...], Meta(max_length=64, extra=by_keys("port"))] = ()


class GatewayBackendTLS(Element, frozen=True, kw_only=True):
    """The client certificate shown to backends."""

    client_certificate_ref: SecretObjectReference | None = None


class GatewayTLSConfig(Element, frozen=True, kw_only=True):
    """TLS of a whole Gateway."""

    backend: GatewayBackendTLS | None = None
    frontend: FrontendTLSConfig | None = None


class GatewaySpec(Element, frozen=True, kw_only=True):
    """`spec` of a Gateway."""

    gateway_class_name: ObjectName
    listeners: Annotated[
        tuple[Listener, ...], Meta(min_length=1, max_length=64, extra=by_keys("name"))
    ]
    addresses: Annotated[tuple[GatewaySpecAddress, ...], Meta(max_length=16)] = ()
    infrastructure: GatewayInfrastructure | None = None
    allowed_listeners: AllowedListeners | None = None
    tls: GatewayTLSConfig | None = None
    default_scope: Annotated[Literal["All", "None"] | None, Meta(extra=refuses())] = None


class Gateway(Resource, frozen=True, kw_only=True):
    """A namespaced entry point."""

    metadata: ObjectMeta
    spec: GatewaySpec
    #: Written by the decoder and never by a document: it only keeps the places of one with a mistake closed.
    closed: Closed | None = None
