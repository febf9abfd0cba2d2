"""GRPCRoute: parents, hostnames and rules (methods, headers, filters, backends).

In: `gateway.networking.k8s.io/v1` documents. Out: `GRPCRoute`. The CRD has no defaults for rules
and matches. A rule without matches takes every call, and a route without rules serves nothing.
Source: Gateway API v1.6 `grpcroute_types.go`.
Must never: have a field of its own where HTTPRoute has the same one; a shared field has one name.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.gateway.httproute import HTTPHeaderMatch, HTTPRoute
from edgefast.api.gateway.httproutefilter import HTTPHeaderFilter, HTTPRequestMirrorFilter
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import (
    Element,
    Hostname,
    Resource,
    SectionName,
    by_keys,
    refuses,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import (
    BackendRef,
    LocalObjectReference,
    ParentReference,
)
from edgefast.api.model.session_persistence import SessionPersistence


class GRPCMethodMatch(Element, frozen=True, kw_only=True):
    """A service, a method, or both; case counts."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    service: Annotated[str, Meta(max_length=1024)] | None = None
    method: Annotated[str, Meta(max_length=1024)] | None = None


class GRPCRouteMatch(Element, frozen=True, kw_only=True):
    """Conditions that must all hold; without a method every call does."""

    method: GRPCMethodMatch | None = None
    headers: Annotated[tuple[HTTPHeaderMatch, ...], Meta(max_length=16, extra=by_keys("name"))] = ()


class GRPCRouteFilter(Element, frozen=True, kw_only=True):
    """One filter; exactly the payload named by `type` is present."""

    type: Literal[
        "ResponseHeaderModifier", "RequestHeaderModifier", "RequestMirror", "ExtensionRef"
    ]
    request_header_modifier: HTTPHeaderFilter | None = None
    response_header_modifier: HTTPHeaderFilter | None = None
    request_mirror: HTTPRequestMirrorFilter | None = None
    extension_ref: LocalObjectReference | None = None


class GRPCBackendRef(BackendRef, frozen=True, kw_only=True):
    """A backend with its share of the traffic and its own filters."""

    filters: Annotated[tuple[GRPCRouteFilter, ...], Meta(max_length=16)] = ()


class GRPCRouteRule(Element, frozen=True, kw_only=True):
    """Matches (any of them), filters and backends."""

    name: SectionName | None = None
    matches: Annotated[tuple[GRPCRouteMatch, ...], Meta(max_length=64)] = ()
    filters: Annotated[tuple[GRPCRouteFilter, ...], Meta(max_length=16)] = ()
    backend_refs: Annotated[tuple[GRPCBackendRef, ...], Meta(max_length=16)] = ()
    session_persistence: SessionPersistence | None = None


class GRPCRouteSpec(Element, frozen=True, kw_only=True):
    """`spec` of a GRPCRoute; no hostnames means those of the listener."""

    parent_refs: Annotated[tuple[ParentReference, ...], Meta(max_length=32)] = ()
    hostnames: Annotated[tuple[Hostname, ...], Meta(max_length=16)] = ()
    rules: Annotated[tuple[GRPCRouteRule, ...], Meta(max_length=16)] = ()
    use_default_gateways: Annotated[Literal["All", "None"] | None, Meta(extra=refuses())] = None


class GRPCRoute(Resource, frozen=True, kw_only=True):
    """A namespaced set of routing rules for gRPC."""

    metadata: ObjectMeta
    spec: GRPCRouteSpec
    #: As in HTTPRoute.
    closed: Closed | None = None


#: What is served as a route: one translation for all of them.
Route = HTTPRoute | GRPCRoute
