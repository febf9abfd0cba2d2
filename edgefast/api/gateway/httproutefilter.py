"""HTTPRouteFilter and its payloads: what a rule or a backend does to a request or response.

In: `filters` of rules and backendRefs. Out: `HTTPRouteFilter`, one payload per type.
Source: Gateway API v1.6 `httproute_types.go`.
Must never: decide what this product supports.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.model.fields import (
    AS_SET,
    Element,
    HTTPHeaderName,
    HTTPHeaderValue,
    PortNumber,
    PreciseHostname,
    by_keys,
)
from edgefast.api.model.reference import BackendObjectReference, LocalObjectReference

_ORIGIN = (
    r"(^\*\Z)|(^(http(s)?):\/\/(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?)\Z)"
)


class HTTPHeader(Element, frozen=True, kw_only=True):
    """A header name and value."""

    name: HTTPHeaderName
    value: HTTPHeaderValue


class HTTPHeaderFilter(Element, frozen=True, kw_only=True):
    """Header edits: set replaces, add appends, remove deletes (names without case)."""

    set: Annotated[tuple[HTTPHeader, ...], Meta(max_length=16, extra=by_keys("name"))] = ()
    add: Annotated[tuple[HTTPHeader, ...], Meta(max_length=16, extra=by_keys("name"))] = ()
    remove: Annotated[tuple[str, ...], Meta(max_length=16, extra=AS_SET)] = ()


class HTTPPathModifier(Element, frozen=True, kw_only=True):
    """A path change; exactly the payload named by `type` is present."""

    type: Literal["ReplaceFullPath", "ReplacePrefixMatch"]
    replace_full_path: Annotated[str, Meta(max_length=1024)] | None = None
    replace_prefix_match: Annotated[str, Meta(max_length=1024)] | None = None


class HTTPRequestRedirectFilter(Element, frozen=True, kw_only=True):
    """An answer with a Location; absent parts are taken from the request."""

    scheme: Literal["http", "https"] | None = None
    hostname: PreciseHostname | None = None
    path: HTTPPathModifier | None = None
    port: PortNumber | None = None
    status_code: Literal[301, 302, 303, 307, 308] = 302


class HTTPURLRewriteFilter(Element, frozen=True, kw_only=True):
    """A change of Host and path towards the backend."""

    hostname: PreciseHostname | None = None
    path: HTTPPathModifier | None = None


class Fraction(Element, frozen=True, kw_only=True):
    """numerator / denominator, at most 1."""

    numerator: Annotated[int, Meta(ge=0, le=2147483647)]
    denominator: Annotated[int, Meta(ge=1, le=2147483647)] = 100


class HTTPRequestMirrorFilter(Element, frozen=True, kw_only=True):
    """A copy of requests to another backend; all of them when no share is given."""

    backend_ref: BackendObjectReference
    percent: Annotated[int, Meta(ge=0, le=100)] | None = None
    fraction: Fraction | None = None


class HTTPCORSFilter(Element, frozen=True, kw_only=True):
    """Cross-origin answers; `max_age` in seconds."""

    allow_origins: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=253, pattern=_ORIGIN)], ...],
        Meta(max_length=64, extra=AS_SET),
    ] = ()
    allow_credentials: bool | None = None
    allow_methods: Annotated[
        tuple[
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
                "*",
            ],
            ...,
        ],
        Meta(max_length=9, extra=AS_SET),
    ] = ()
    allow_headers: Annotated[tuple[HTTPHeaderName, ...], Meta(max_length=64, extra=AS_SET)] = ()
    expose_headers: Annotated[tuple[HTTPHeaderName, ...], Meta(max_length=64, extra=AS_SET)] = ()
    max_age: Annotated[int, Meta(ge=1, le=2147483647)] = 5


class GRPCAuthConfig(Element, frozen=True, kw_only=True):
    """Headers sent to a gRPC authorisation service."""

    allowed_headers: Annotated[tuple[str, ...], Meta(max_length=64, extra=AS_SET)] = ()


class HTTPAuthConfig(Element, frozen=True, kw_only=True):
    """Path and headers of an HTTP authorisation service."""

    path: (
        Annotated[
            str,
            Meta(
                max_length=1024,
                pattern=r"^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+\Z",
            ),
        ]
        | None
    ) = None
    allowed_headers: Annotated[tuple[str, ...], Meta(max_length=64, extra=AS_SET)] = ()
    allowed_response_headers: Annotated[tuple[str, ...], Meta(max_length=64, extra=AS_SET)] = ()


class ForwardBodyConfig(Element, frozen=True, kw_only=True):
    """How much of a body an authorisation service gets, in bytes."""

    max_size: Annotated[int, Meta(ge=0, le=2147483647)] | None = None


class HTTPExternalAuthFilter(Element, frozen=True, kw_only=True):
    """A question to an authorisation service before the request goes on."""

    protocol: Literal["HTTP", "GRPC"]
    backend_ref: BackendObjectReference
    grpc: GRPCAuthConfig | None = None
    http: HTTPAuthConfig | None = None
    forward_body: ForwardBodyConfig | None = None


class HTTPRouteFilter(Element, frozen=True, kw_only=True):
    """One filter; exactly the payload named by `type` is present."""

    type: Literal[
        "RequestHeaderModifier",
        "ResponseHeaderModifier",
        "RequestMirror",
        "RequestRedirect",
        "URLRewrite",
        "ExtensionRef",
        "CORS",
        "ExternalAuth",
    ]
    request_header_modifier: HTTPHeaderFilter | None = None
    response_header_modifier: HTTPHeaderFilter | None = None
    request_mirror: HTTPRequestMirrorFilter | None = None
    request_redirect: HTTPRequestRedirectFilter | None = None
    url_rewrite: HTTPURLRewriteFilter | None = None
    cors: HTTPCORSFilter | None = None
    external_auth: HTTPExternalAuthFilter | None = None
    extension_ref: LocalObjectReference | None = None
