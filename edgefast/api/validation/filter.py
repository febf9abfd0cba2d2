"""Filter: rules about filters of routes and listeners: payloads that fit their type, and filters that fit each other.

In: filters, their payloads, and their lists. Out: violations.
Source: CEL of the Gateway API v1.6 HTTPRoute CRD, and v1.7 Gateway CRD.
Must never: decide which filters this product supports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgefast.api.gateway.grpcroute import (
    GRPCBackendRef,
    GRPCRouteFilter,
    GRPCRouteRule,
)
from edgefast.api.gateway.httproute import HTTPBackendRef, HTTPRouteRule
from edgefast.api.gateway.httproutefilter import (
    Fraction,
    HTTPCORSFilter,
    HTTPExternalAuthFilter,
    HTTPPathModifier,
    HTTPRequestMirrorFilter,
    HTTPRouteFilter,
)
from edgefast.api.gateway.listener import ListenerFilter
from edgefast.api.model.fields import Element
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

#: Type of a filter -> (attribute, document name) of its payload.
_PAYLOADS = {
    "RequestHeaderModifier": ("request_header_modifier", "requestHeaderModifier"),
    "ResponseHeaderModifier": ("response_header_modifier", "responseHeaderModifier"),
    "RequestMirror": ("request_mirror", "requestMirror"),
    "RequestRedirect": ("request_redirect", "requestRedirect"),
    "URLRewrite": ("url_rewrite", "urlRewrite"),
    "CORS": ("cors", "cors"),
    "ExternalAuth": ("external_auth", "externalAuth"),
    "ExtensionRef": ("extension_ref", "extensionRef"),
}
_GRPC_PAYLOADS = {
    word: _PAYLOADS[word]
    for word in ("RequestHeaderModifier", "ResponseHeaderModifier", "RequestMirror", "ExtensionRef")
}
_LISTENER_PAYLOADS = {word: _PAYLOADS[word] for word in ("ExternalAuth", "ExtensionRef")}
_PATH_PAYLOADS = {
    "ReplaceFullPath": ("replace_full_path", "replaceFullPath"),
    "ReplacePrefixMatch": ("replace_prefix_match", "replacePrefixMatch"),
}
_AUTH_PAYLOADS = {"GRPC": ("grpc", "grpc"), "HTTP": ("http", "http")}
_ONCE = frozenset(
    {
        "CORS",
        "RequestHeaderModifier",
        "ResponseHeaderModifier",
        "RequestRedirect",
        "URLRewrite",
    }
)


def _check_payload(
    one: Element, chosen: str, payloads: Mapping[str, tuple[str, str]], by: str = "type"
) -> Iterable[Violation]:
    """A union: the payload of the chosen type is there, and no other."""
    for word, (attr, name) in payloads.items():
        present = getattr(one, attr) is not None
        if present and word != chosen:
            yield Violation((name,), "Forbidden", f"with {by} {chosen} (it belongs to {word})")
        elif not present and word == chosen:
            yield Violation((name,), "Required", f"with {by} {chosen}")


@BOOK.on(HTTPRouteFilter, "type", *(attr for attr, _ in _PAYLOADS.values()))
def check_filter(one: HTTPRouteFilter) -> Iterable[Violation]:
    """Exactly the payload that `type` names."""
    return _check_payload(one, one.type, _PAYLOADS)


@BOOK.on(GRPCRouteFilter, "type", *(attr for attr, _ in _GRPC_PAYLOADS.values()))
def check_grpc_filter(one: GRPCRouteFilter) -> Iterable[Violation]:
    """Exactly the payload that `type` names."""
    return _check_payload(one, one.type, _GRPC_PAYLOADS)


@BOOK.on(ListenerFilter, "type", *(attr for attr, _ in _LISTENER_PAYLOADS.values()))
def check_listener_filter(one: ListenerFilter) -> Iterable[Violation]:
    """Exactly the payload that `type` names."""
    return _check_payload(one, one.type, _LISTENER_PAYLOADS)


@BOOK.on(HTTPPathModifier, "type", "replace_full_path", "replace_prefix_match")
def check_path_modifier(one: HTTPPathModifier) -> Iterable[Violation]:
    """Exactly the payload that `type` names."""
    return _check_payload(one, one.type, _PATH_PAYLOADS)


@BOOK.on(HTTPExternalAuthFilter, "protocol", "grpc", "http")
def check_external_auth(one: HTTPExternalAuthFilter) -> Iterable[Violation]:
    """Exactly the payload that `protocol` names."""
    return _check_payload(one, one.protocol, _AUTH_PAYLOADS, by="protocol")


@BOOK.on(HTTPRouteRule, "filters")
@BOOK.on(HTTPBackendRef, "filters")
@BOOK.on(GRPCRouteRule, "filters")
@BOOK.on(GRPCBackendRef, "filters")
def check_filter_list(
    holder: HTTPRouteRule | HTTPBackendRef | GRPCRouteRule | GRPCBackendRef,
) -> Iterable[Violation]:
    """Most types come once; a redirect and a rewrite exclude each other."""
    filters: tuple[Any, ...] = holder.filters
    if len(filters) < 2:
        return
    seen: set[str] = set()
    for index, one in enumerate(filters):
        if one.type in seen and one.type in _ONCE:
            yield Violation(
                ("filters", index, "type"), "Duplicate", f'"{one.type}" (at most once in a list)'
            )
        other = {"RequestRedirect": "URLRewrite", "URLRewrite": "RequestRedirect"}.get(one.type)
        if other in seen:
            yield Violation(("filters", index, "type"), "Forbidden", f"{one.type} beside {other}")
        seen.add(one.type)


@BOOK.on(HTTPRequestMirrorFilter, "percent", "fraction")
def check_mirror_share(one: HTTPRequestMirrorFilter) -> Iterable[Violation]:
    """A share is a percentage or a fraction."""
    if one.percent is not None and one.fraction is not None:
        return (Violation(("fraction",), "Forbidden", "together with percent"),)
    return ()


@BOOK.on(Fraction, "numerator", "denominator")
def check_fraction(one: Fraction) -> Iterable[Violation]:
    """A share is one at most."""
    if one.numerator > one.denominator:
        return (
            Violation(
                ("numerator",),
                "Invalid",
                f"{one.numerator} (at most denominator, {one.denominator})",
            ),
        )
    return ()


@BOOK.on(HTTPCORSFilter, "allow_origins", "allow_methods", "allow_headers")
def check_cors(one: HTTPCORSFilter) -> Iterable[Violation]:
    """A wildcard says all there is to say."""
    for name, values in (
        ("allowOrigins", one.allow_origins),
        ("allowMethods", one.allow_methods),
        ("allowHeaders", one.allow_headers),
    ):
        if len(values) > 1 and "*" in values:
            yield Violation(
                (name, values.index("*")), "Invalid", '"*" (must be the only entry of its list)'
            )
