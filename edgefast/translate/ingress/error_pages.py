"""Error pages: custom-http-errors, default-backend, disable-proxy-intercept-errors -> response overrides of a location.

In: annotations, settings of the ConfigMap, a Lookup. Out: the `ErrorPages` of an Ingress, the `Page` of a location, its overrides.
The codes of an Ingress come from default-backend, or from the controller's default backend, which answers 404. Codes of the ConfigMap
always come from the latter, and apply where an Ingress has none of its own.
Source: ingress-nginx customhttperrors/main.go, defaultbackend/main.go, controller.go (`DefaultBackendUpstreamName`), nginx.tmpl.
Must never: send a page of one namespace to the locations of another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from edgefast.api.edge.response_override import (
    CustomResponse,
    CustomResponseMatch,
    ErrorService,
    FixedHeader,
    ResponseOverride,
    StatusCodeMatch,
    StatusCodeRange,
)
from edgefast.api.gateway.httproute import HTTPBackendRef
from edgefast.api.gateway.httproutefilter import HTTPHeader
from edgefast.api.model.reference import BackendObjectReference
from edgefast.translate.ingress.backends import Target, find_target
from edgefast.translate.ingress.configmap import Globals, Note
from edgefast.translate.ingress.error_annotations import ErrorPages
from edgefast.translate.ingress.lookup import Lookup
from edgefast.translate.ingress.servers import Upstream

__all__ = [
    "Page",
    "describe_origin",
    "find_default_backend",
    "label_page",
    "make_page",
    "page_headers",
    "translate_page",
]

#: Statuses of one match, and what the controller's default backend answers.
_STATUSES = 50
_NOT_FOUND = 404


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Where the error pages of a location come from; equal ones share a policy."""

    codes: tuple[int, ...]
    intercepts: bool
    ref: BackendObjectReference | None = None  # None: 404 of the controller's default backend
    headers: tuple[tuple[str, str], ...] = ()


def label_page(page: Page) -> str:
    """Return the part that names of objects with a page contain; equal pages have the same one."""
    return hashlib.blake2s(msgspec.json.encode(page), digest_size=4).hexdigest()


def find_default_backend(
    pages: ErrorPages, namespace: str, lookup: Lookup
) -> tuple[Target | None, tuple[Note, ...]]:
    """Return the target of default-backend: the first port of its Service, None without endpoints."""
    if not pages.service:
        return None, ()
    named = f"Service {namespace}/{pages.service}"
    service = lookup.service((namespace, pages.service))
    if service is None or not service.spec.ports:
        message = f"{named} {'not found' if service is None else 'has no ports'}; errors are those of the controller's default backend"
        return None, (Note(name="default-backend", message=message, reason="BackendNotFound"),)
    upstream = Upstream(namespace, pages.service, str(service.spec.ports[0].port))
    target = find_target(upstream, "HTTP", lookup, service_upstream=False)
    wrong = target.wrong
    if (
        not wrong
        and target.port is not None
        and not lookup.has_endpoints(upstream.key, target.port)
    ):
        wrong = f"{named} has no endpoints"
    if wrong:
        message = f"{wrong}; errors are those of the controller's default backend"
        return None, (Note(name="default-backend", message=message, reason="EndpointsNotFound"),)
    return target, ()


def describe_origin(
    namespace: str, ingress: str, service: str, port: str
) -> tuple[tuple[str, str], ...]:
    """Return the headers that describe the location to an error page; nginx sends no empty ones."""
    found = {
        "x-ingress-name": ingress,
        "x-namespace": namespace,
        "x-service-name": service,
        "x-service-port": port,
    }
    return tuple((name, value) for name, value in found.items() if value)


def make_page(
    pages: ErrorPages,
    globals_: Globals,
    found: Target | None,
    origin: tuple[tuple[str, str], ...],
    *,
    closed: bool,
) -> Page | None:
    """Return the page of a location; `found`: default-backend. A closed location has the codes of the ConfigMap alone."""
    if pages.codes and not closed:
        if found is None or found.ref is None:
            return Page(codes=pages.codes, intercepts=pages.intercepts)
        return Page(
            codes=pages.codes,
            intercepts=pages.intercepts,
            ref=_reference(found.ref),
            headers=origin,
        )
    if globals_.error_codes:
        return Page(codes=globals_.error_codes, intercepts=globals_.intercepts_errors)
    return None


def translate_page(page: Page) -> tuple[ResponseOverride, ...]:
    """Return the overrides of a page."""
    service, response = None, None
    if page.ref is not None:
        headers = tuple(FixedHeader(name=name, value=value) for name, value in page.headers)
        service = ErrorService(
            backend_ref=page.ref,
            path="/",
            status="Service",
            all_request_headers=True,
            headers=headers,
            timeout="60s",
        )
    else:
        response = CustomResponse(status_code=_NOT_FOUND)
    spans = list(_span(page.codes))
    return tuple(
        ResponseOverride(
            match=CustomResponseMatch(
                status_codes=tuple(spans[at : at + _STATUSES]),
                source="All" if page.intercepts else "Gateway",
            ),
            response=response,
            service=service,
        )
        for at in range(0, len(spans), _STATUSES)
    )


def page_headers(origin: tuple[tuple[str, str], ...]) -> tuple[HTTPHeader, ...]:
    """Return the headers of requests that default-backend gets in place of a Service without endpoints."""
    pairs = (("x-code", "503"), *origin)
    return tuple(HTTPHeader(name=name, value=value) for name, value in pairs)


def _reference(ref: HTTPBackendRef) -> BackendObjectReference:
    return BackendObjectReference(
        group=ref.group, kind=ref.kind, name=ref.name, namespace=ref.namespace, port=ref.port
    )


def _span(codes: Iterable[int]) -> Iterator[StatusCodeMatch]:
    """Give codes as values and ranges."""
    spans: list[list[int]] = []
    for code in sorted(codes):
        if spans and spans[-1][1] == code - 1:
            spans[-1][1] = code
        else:
            spans.append([code, code])
    for first, last in spans:
        if first == last:
            yield StatusCodeMatch(type="Value", value=first)
        else:
            yield StatusCodeMatch(type="Range", range=StatusCodeRange(start=first, end=last))
