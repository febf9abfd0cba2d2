"""HTTPRoute: parents, hostnames and rules (matches, filters, backends, timeouts, retries).

In: `gateway.networking.k8s.io/v1` or `v1beta1` documents. Out: `HTTPRoute` with the CRD's
defaults in place (no matches: PathPrefix "/"; no rules: one rule with that match).
Source: Gateway API v1.6 `httproute_types.go`.
Must never: reorder rules or matches; precedence is translate's.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.gateway.httproutefilter import HTTPRouteFilter
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import (
    AS_SET,
    Duration,
    Element,
    Hostname,
    HTTPHeaderName,
    HTTPHeaderValue,
    Resource,
    SectionName,
    by_keys,
    refuses,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import Origin
from edgefast.api.model.reference import BackendRef, ParentReference
from edgefast.api.model.session_persistence import SessionPersistence


class HTTPPathMatch(Element, frozen=True, kw_only=True):
    """A path condition."""

    type: Literal["Exact", "PathPrefix", "RegularExpression"] = "PathPrefix"
    value: Annotated[str, Meta(max_length=1024)] = "/"


class HTTPHeaderMatch(Element, frozen=True, kw_only=True):
    """A header condition; names compare without case."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    name: HTTPHeaderName
    value: HTTPHeaderValue


class HTTPQueryParamMatch(Element, frozen=True, kw_only=True):
    """A query parameter condition."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    name: HTTPHeaderName
    value: Annotated[str, Meta(min_length=1, max_length=1024)]


class HTTPRouteMatch(Element, frozen=True, kw_only=True):
    """Conditions that must all hold."""

    path: HTTPPathMatch = HTTPPathMatch()
    headers: Annotated[tuple[HTTPHeaderMatch, ...], Meta(max_length=16, extra=by_keys("name"))] = ()
    query_params: Annotated[
        tuple[HTTPQueryParamMatch, ...], Meta(max_length=16, extra=by_keys("name"))
    ] = ()
    method: Annotated[
        Literal[
            "GET",
            "HEAD",
            "POST",
            "PUT",
            "DELETE",
            "CONNECT",
            "OPTIONS",
            "TRACE",
            "PATCH",
        ]
        | None,
        Meta(extra=refuses("CONNECT", "TRACE")),
    ] = None


class HTTPBackendRef(BackendRef, frozen=True, kw_only=True):
    """A backend with its share of the traffic and its own filters."""

    filters: Annotated[tuple[HTTPRouteFilter, ...], Meta(max_length=16)] = ()


class HTTPRouteTimeouts(Element, frozen=True, kw_only=True):
    """Gateway API durations; "0s" switches a timeout off."""

    request: Duration | None = None
    backend_request: Duration | None = None


class HTTPRouteRetry(Element, frozen=True, kw_only=True):
    """When to try again; `attempts` counts retries, not the first try: 0 is none at all."""

    codes: Annotated[tuple[Annotated[int, Meta(ge=400, le=599)], ...], Meta(extra=AS_SET)] = ()
    attempts: Annotated[int, Meta(ge=0, le=2147483647)] | None = None
    backoff: Duration | None = None


class HTTPRouteRule(Element, frozen=True, kw_only=True):
    """Matches (any of them), filters and backends."""

    name: SectionName | None = None
    matches: Annotated[tuple[HTTPRouteMatch, ...], Meta(max_length=64)] = (HTTPRouteMatch(),)
    filters: Annotated[tuple[HTTPRouteFilter, ...], Meta(max_length=16)] = ()
    backend_refs: Annotated[tuple[HTTPBackendRef, ...], Meta(max_length=16)] = ()
    timeouts: HTTPRouteTimeouts | None = None
    retry: HTTPRouteRetry | None = None
    session_persistence: SessionPersistence | None = None


class HTTPRouteSpec(Element, frozen=True, kw_only=True):
    """`spec` of an HTTPRoute; no hostnames means those of the listener."""

    parent_refs: Annotated[tuple[ParentReference, ...], Meta(max_length=32)] = ()
    hostnames: Annotated[tuple[Hostname, ...], Meta(max_length=16)] = ()
    rules: Annotated[tuple[HTTPRouteRule, ...], Meta(min_length=1, max_length=16)] = (
        HTTPRouteRule(),
    )
    use_default_gateways: Annotated[Literal["All", "None"] | None, Meta(extra=refuses())] = None


class HTTPRoute(Resource, frozen=True, kw_only=True):
    """A namespaced set of routing rules."""

    metadata: ObjectMeta
    spec: HTTPRouteSpec
    #: Written by the decoder and never by a document: the route only keeps the place of one with a mistake closed.
    closed: Closed | None = None
    #: Written by edgefast/translate/ingress and never by a document: what the route serves of an Ingress.
    origin: Origin | None = None
