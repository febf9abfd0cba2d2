"""Listener: a port, a protocol, a hostname and the namespaces and kinds of routes that may attach.

In: `spec.listeners` of Gateways and ListenerSets. Out: `Listener` (a ListenerSet's entry has the
same fields, so it is the same Struct).
Source: Gateway API v1.6 `gateway_types.go`, of filters v1.7 (GEP-5224).
Must never: decide whether a protocol or a route kind is supported; that goes to the status.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.gateway.httproutefilter import HTTPExternalAuthFilter
from edgefast.api.model.fields import (
    AnnotationValue,
    Element,
    Group,
    Hostname,
    Kind,
    ListenerProtocol,
    PortNumber,
    SectionName,
)
from edgefast.api.model.meta import LabelSelector
from edgefast.api.model.reference import (
    GATEWAY_GROUP,
    LocalObjectReference,
    SecretObjectReference,
)


class RouteGroupKind(Element, frozen=True, kw_only=True):
    """A kind of route."""

    group: Group = GATEWAY_GROUP
    kind: Kind


class RouteNamespaces(Element, frozen=True, kw_only=True):
    """Namespaces whose routes may attach; `selector` is read when `from_` is Selector."""

    from_: Literal["All", "Selector", "Same"] = field(default="Same", name="from")
    selector: LabelSelector | None = None


class AllowedRoutes(Element, frozen=True, kw_only=True):
    """Which routes may attach to a listener; no `kinds` means those that fit the protocol."""

    namespaces: RouteNamespaces = RouteNamespaces()
    kinds: Annotated[tuple[RouteGroupKind, ...], Meta(max_length=8)] = ()


class ListenerTLSConfig(Element, frozen=True, kw_only=True):
    """TLS of one listener."""

    mode: Literal["Terminate", "Passthrough"] = "Terminate"
    certificate_refs: Annotated[tuple[SecretObjectReference, ...], Meta(max_length=64)] = ()
    options: Annotated[dict[str, AnnotationValue], Meta(max_length=16)] = field(
        default_factory=dict
    )


class ListenerFilter(Element, frozen=True, kw_only=True):
    """One filter of a listener; exactly the payload named by `type` is present."""

    type: Literal["ExternalAuth", "ExtensionRef"]
    external_auth: HTTPExternalAuthFilter | None = None
    extension_ref: LocalObjectReference | None = None


class ListenerFilters(Element, frozen=True, kw_only=True):
    """What runs before a request is routed, in this order."""

    requests: Annotated[tuple[ListenerFilter, ...], Meta(max_length=16)] = ()


class Listener(Element, frozen=True, kw_only=True):
    """One listener of a Gateway or of a ListenerSet."""

    name: SectionName
    hostname: Hostname | None = None
    port: PortNumber
    protocol: ListenerProtocol
    tls: ListenerTLSConfig | None = None
    allowed_routes: AllowedRoutes = AllowedRoutes()
    filters: ListenerFilters | None = None
