"""Redirects: the redirects of ingress-nginx as filters of rules.

In: annotations, the settings of the ConfigMap, ports. Out: a `Redirection` each: a filter, and the form of its Location that no
field of the Gateway API expresses.
Source: ingress-nginx lua_ingress.lua (`redirect_to_https`), ngx_srv_redirect.lua, nginx.tmpl; nginx's own 301.
Must never: add the query of a request to a URL that the author wrote.
"""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from edgefast.api.edge.httproutefilter import (
    DirectResponse,
    HTTPRouteFilterSpec,
    RedirectForm,
    RedirectLocation,
)
from edgefast.api.gateway.httproutefilter import (
    HTTPHeader,
    HTTPHeaderFilter,
    HTTPPathModifier,
    HTTPRequestRedirectFilter,
    HTTPRouteFilter,
)

Scheme = Literal["http", "https"]
Code = Literal[301, 302, 303, 307, 308]


class Redirect(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with a Location."""

    filters: tuple[HTTPRouteFilter, ...]
    spec: HTTPRouteFilterSpec | None = None  # an answer of the proxy, with the filters' headers
    trim_slash: bool = False
    write_port: bool = False
    drop_query: bool = False


def redirect_to_https(code: int, *, preserve_slash: bool) -> Redirect:
    """Redirect to the same URL over TLS, without one trailing slash."""
    made = HTTPRequestRedirectFilter(scheme="https", status_code=cast("Code", code))
    return Redirect(filters=(_filter(made),), trim_slash=not preserve_slash)


def redirect_to_slash(path: str, scheme: Scheme) -> Redirect:
    """Redirect to the path with its slash: nginx' own 301, without a port and with the scheme of the connection."""
    made = HTTPRequestRedirectFilter(
        scheme=scheme,
        path=HTTPPathModifier(type="ReplaceFullPath", replace_full_path=path),
        status_code=301,
    )
    return Redirect(filters=(_filter(made),))


def redirect_to_root(target: str) -> Redirect:
    """Redirect to app-root: without the query of the request."""
    made = HTTPRequestRedirectFilter(
        path=HTTPPathModifier(type="ReplaceFullPath", replace_full_path=target), status_code=302
    )
    return Redirect(filters=(_filter(made),), drop_query=True)


def redirect_to_name(host: str, code: int) -> Redirect:
    """Redirect to the name with or without www: the port is always written."""
    made = HTTPRequestRedirectFilter(hostname=host, status_code=cast("Code", code))
    return Redirect(filters=(_filter(made),), trim_slash=True, write_port=True)


def redirect_to_place(scheme: str, host: str, port: str, path: str) -> Redirect:
    """Redirect to the URL of a rewrite-target, with the query of the request."""
    made = HTTPRequestRedirectFilter(
        scheme="https" if scheme == "https" else "http",
        hostname=host,
        port=int(port) if port else None,
        path=HTTPPathModifier(type="ReplaceFullPath", replace_full_path=path),
        status_code=302,
    )
    return Redirect(filters=(_filter(made),))


def redirect_to_url(url: str, code: int) -> Redirect:
    """Redirect to a URL as it is written."""
    headers = HTTPHeaderFilter(set=(HTTPHeader(name="location", value=url),))
    return Redirect(
        filters=(HTTPRouteFilter(type="ResponseHeaderModifier", response_header_modifier=headers),),
        spec=HTTPRouteFilterSpec(direct_response=DirectResponse(status_code=code)),
    )


def redirect_to_template(template: str, code: int, pattern: str = "") -> Redirect:
    """Redirect to a Location with parts of the request; with a pattern its query follows."""
    form = RedirectForm(
        query="Keep" if pattern else "Remove",
        location=RedirectLocation(template=template, pattern=pattern or None),
    )
    return Redirect(
        filters=(_filter(HTTPRequestRedirectFilter(status_code=cast("Code", code))),),
        spec=HTTPRouteFilterSpec(redirect=form),
    )


def _filter(made: HTTPRequestRedirectFilter) -> HTTPRouteFilter:
    return HTTPRouteFilter(type="RequestRedirect", request_redirect=made)
