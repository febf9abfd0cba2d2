"""Filters: what requests of a location and their responses get on the way to a backend and back.

In: a location, its Ingress, its host, the scheme. Out: filters of a rule in order: request headers, the Host of upstream-vhost, CORS,
mirror, response headers.
Source: ingress-nginx nginx.tmpl (`proxy_set_header`).
Must never: send a backend the credentials of basic authentication, or a client certificate without auth-tls-pass-certificate-to-upstream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgefast.api.gateway.httproutefilter import (
    HTTPHeader,
    HTTPHeaderFilter,
    HTTPRouteFilter,
    HTTPURLRewriteFilter,
)
from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.cors import translate_cors
from edgefast.translate.ingress.draft import guard_of
from edgefast.translate.ingress.findings import Findings
from edgefast.translate.ingress.locations import Place, needs_rewrite
from edgefast.translate.ingress.mirror import translate_mirror
from edgefast.translate.ingress.redirects import Scheme
from edgefast.translate.ingress.responseheaders import (
    add_strict_transport,
    find_custom_headers,
    set_response_headers,
)
from edgefast.translate.ingress.servers import Server, Source

__all__ = ["make_filters"]

_HTTPS = 443
_HOST = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def make_filters(
    place: Place, source: Source, server: Server, scheme: Scheme, findings: Findings
) -> tuple[HTTPRouteFilter, ...] | None:
    """Return the filters of requests to a backend, the request headers first; None: the custom headers cannot be served."""
    annotations = source.annotations
    custom = find_custom_headers(source, findings.settings, findings.lookup)
    findings.note(source, *custom.notes)
    if custom.closed:
        return None
    filters: list[HTTPRouteFilter] = [_request_headers(place, source, server, scheme, findings)]
    if annotations.upstream_vhost:
        filters += _rewrite_host(source, findings)
    if annotations.cors is not None:
        cors, notes = translate_cors(annotations.cors)
        findings.note(source, *notes)
        filters += () if cors is None else (cors,)
    if annotations.mirror:
        filters += _mirror(source, findings)
    if custom.headers:
        filters.append(set_response_headers(custom.headers))
    made = tuple(filters)
    return add_strict_transport(made, findings.settings) if scheme == "https" else made


def _request_headers(
    place: Place, source: Source, server: Server, scheme: Scheme, findings: Findings
) -> HTTPRouteFilter:
    """The headers to backends that differ from those of the EdgeProxy, and those that never reach one."""
    sets: list[HTTPHeader] = []
    annotations, settings, (plain, tls) = source.annotations, findings.settings, findings.ports
    if settings.forwarded_address and not settings.forwarded_headers:
        # enable-real-ip trusts addresses alone, and the EdgeProxy other headers of trusted peers, too.
        port = _HTTPS if scheme == "https" else plain
        sets = [
            HTTPHeader(name="x-forwarded-port", value=str(port)),
            HTTPHeader(name="x-forwarded-scheme", value=scheme),
            HTTPHeader(name="x-scheme", value=scheme),
        ]
    elif scheme == "https" and not settings.forwarded_headers and tls != _HTTPS:
        # nginx writes 443 for TLS, also at another port.
        sets = [HTTPHeader(name="x-forwarded-port", value=str(_HTTPS))]
    if annotations.prefix_header and needs_rewrite(place.location, place.path):
        sets.append(HTTPHeader(name="x-forwarded-prefix", value=annotations.prefix_header))
    requests = annotations.snippet.requests
    sets += (HTTPHeader(name=name, value=value) for name, value in requests)
    removes = ["proxy"]
    if annotations.basic is not None and guard_of(place.path, settings) == "all":
        removes.append("authorization")
    client = server.client_tls
    if client is not None and client.rule is not None and not client.passes:
        removes.append("ssl-client-cert")
    headers = HTTPHeaderFilter(set=tuple(sets), remove=tuple(removes))
    return HTTPRouteFilter(type="RequestHeaderModifier", request_header_modifier=headers)


def _rewrite_host(source: Source, findings: Findings) -> Iterator[HTTPRouteFilter]:
    host = source.annotations.upstream_vhost
    if not _HOST.fullmatch(host):
        message = "not a host name without a port; backends get the Host of the request"
        findings.note(
            source,
            Note(name="upstream-vhost", message=message, error=True, reason="NotSupported"),
        )
        return
    yield HTTPRouteFilter(type="URLRewrite", url_rewrite=HTTPURLRewriteFilter(hostname=host))


def _mirror(source: Source, findings: Findings) -> Iterator[HTTPRouteFilter]:
    found = translate_mirror(source)
    findings.note(source, *found.notes)
    if found.backend is not None and found.filter is not None:
        findings.add_backend(found.backend)
        yield found.filter
