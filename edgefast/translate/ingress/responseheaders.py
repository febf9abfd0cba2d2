"""Response headers: custom-headers -> headers that responses get from a ConfigMap; Strict-Transport-Security.

In: an Ingress, the settings, a Lookup. Out: the headers and their filter, or why its locations answer 503: a ConfigMap that is
missing, a header that global-allowed-response-headers does not list.
Source: ingress-nginx customheaders/main.go.
Must never: set a header that the ConfigMap of the controller does not allow.
"""

from __future__ import annotations

import re

import msgspec

from edgefast.api.gateway.httproutefilter import HTTPHeader, HTTPHeaderFilter, HTTPRouteFilter
from edgefast.translate.ingress.configmap import Globals, Note
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.ingress.servers import Source
from edgefast.translate.match.header_name import check_header_name

_NAME = re.compile(r"[a-zA-Z0-9\-_]+")
_VALUE = re.compile(r"[!-~]+([\t ][!-~]+)*")
#: Headers of one filter; one more is for Strict-Transport-Security.
_MOST = 15


class CustomHeaders(msgspec.Struct, frozen=True, kw_only=True):
    """Headers of responses."""

    headers: tuple[HTTPHeader, ...] = ()
    closed: bool = False
    notes: tuple[Note, ...] = ()


def find_custom_headers(source: Source, settings: Globals, lookup: Lookup) -> CustomHeaders:
    """Return the headers that the annotation custom-headers names."""
    given = source.annotations.custom_headers
    if not given:
        return CustomHeaders()
    namespace, _, name = given.rpartition("/")
    found = lookup.config_map((namespace or source.namespace, name))
    if namespace not in ("", source.namespace) or found is None:
        return _close(f"ConfigMap {namespace or source.namespace}/{name} not found")
    headers = []
    for key in sorted(found.data):
        value = found.data[key].strip()
        if key not in settings.response_headers:
            return _close(f'"{key[:64]}" is not in global-allowed-response-headers')
        if not _NAME.fullmatch(key) or check_header_name(key) or not _VALUE.fullmatch(value):
            return _close(f'"{key[:64]}" is not a header that can be set')
        headers.append(HTTPHeader(name=key, value=value))
    if len(headers) > _MOST:
        return _close(f"{len(headers)} headers (allowed: {_MOST})")
    return CustomHeaders(headers=tuple(headers))


def _close(message: str) -> CustomHeaders:
    note = Note(name="custom-headers", message=f"{message}; its locations answer 503", error=True)
    return CustomHeaders(closed=True, notes=(note,))


def set_response_headers(headers: tuple[HTTPHeader, ...]) -> HTTPRouteFilter:
    """Return the filter that sets headers of responses."""
    return HTTPRouteFilter(
        type="ResponseHeaderModifier", response_header_modifier=HTTPHeaderFilter(set=headers)
    )


def add_strict_transport(
    filters: tuple[HTTPRouteFilter, ...], settings: Globals
) -> tuple[HTTPRouteFilter, ...]:
    """Return the filters of an answer over TLS with the header of the ConfigMap (hsts), in one filter with other headers."""
    value = settings.strict_transport
    if not value:
        return filters
    header = HTTPHeader(name="strict-transport-security", value=value)
    present = [one for one in filters if one.response_header_modifier is not None]
    others = tuple(one for one in filters if one.response_header_modifier is None)
    before: tuple[HTTPHeader, ...] = ()
    if present and present[0].response_header_modifier is not None:
        before = present[0].response_header_modifier.set
    return (*others, set_response_headers((*before, header)))
