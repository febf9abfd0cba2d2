"""Filters: the list of a rule or of a backendRef -> their IR.

In: HTTPRouteFilters. Out: `Filters`, with a problem for each that cannot be served. Filters apply in
the fixed order of the data plane (redirect, CORS, headers, rewrite, mirror), so one of each kind is
allowed, mirrors and extensions excepted; RequestRedirect and URLRewrite exclude each other.
Source: Gateway API HTTPRouteFilter. An unresolved extension must fail requests, not be skipped.
Must never: leave out a filter silently.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.problem import did_you_mean, supported_text
from edgefast.resources.httproutefilter import HTTPRequestMirrorFilter, HTTPRouteFilter
from edgefast.resources.kinds import EDGE_GROUP
from edgefast.resources.reference import LocalObjectReference
from edgefast.translate.backend import resolve_backend
from edgefast.translate.clusterref import ClusterRef
from edgefast.translate.cors import translate_cors
from edgefast.translate.facts import Reader
from edgefast.translate.header import translate_headers
from edgefast.translate.ratelimit import NOT_YET, check_rate_limit
from edgefast.translate.redirect import translate_redirect, translate_rewrite
from edgefast.translate.report import Report

_REPEATABLE = ("RequestMirror", "ExtensionRef")
_EXTENSIONS = ("RateLimitFilter",)


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where filters stand: what their translation depends on beside themselves."""

    namespace: str  # of the route
    certificate: str  # of the Gateway, "namespace/secret" or ""
    prefixes: bool  # all matches of the rule are PathPrefix
    redirects: bool = True  # RequestRedirect is allowed: the rule has no backends


class Filters:
    """What a list of filters comes to."""

    __slots__ = (
        "clusters",
        "cors",
        "mirrors",
        "redirect",
        "request_headers",
        "response_headers",
        "rewrite",
    )

    def __init__(self) -> None:
        self.request_headers: ir.HeaderOps | None = None
        self.response_headers: ir.HeaderOps | None = None
        self.redirect: ir.Redirect | None = None
        self.rewrite: ir.Rewrite | None = None
        self.mirrors: list[ir.Mirror] = []
        self.cors: ir.Cors | None = None
        self.clusters: list[ClusterRef] = []


def translate_filters(
    filters: tuple[HTTPRouteFilter, ...], place: Place, reader: Reader, report: Report, path: str
) -> Filters:
    """Translate filters in order; `path` is the field path of the list."""
    found = Filters()
    if not filters:
        return found
    seen: set[str] = set()
    for at, one in enumerate(filters):
        where = f"{path}[{at}]"
        if one.type in seen and one.type not in _REPEATABLE:
            report.refuse(where, "IncompatibleFilters", f"{one.type} is allowed once")
            continue
        seen.add(one.type)
        _translate(one, found, place, reader, report, where)
    if "RequestRedirect" in seen and "URLRewrite" in seen:
        said = "RequestRedirect and URLRewrite exclude each other"
        report.refuse(path, "IncompatibleFilters", said)
    if "RequestRedirect" in seen and not place.redirects:
        said = "RequestRedirect answers by itself and excludes backendRefs"
        report.refuse(path, "IncompatibleFilters", said)
    return found


def _translate(
    one: HTTPRouteFilter, found: Filters, place: Place, reader: Reader, report: Report, path: str
) -> None:
    if one.type == "RequestHeaderModifier" and one.request_header_modifier:
        where = f"{path}.requestHeaderModifier"
        found.request_headers = translate_headers(one.request_header_modifier, report, where)
    elif one.type == "ResponseHeaderModifier" and one.response_header_modifier:
        where = f"{path}.responseHeaderModifier"
        found.response_headers = translate_headers(one.response_header_modifier, report, where)
    elif one.type == "RequestRedirect" and one.request_redirect:
        found.redirect = translate_redirect(
            one.request_redirect, report, f"{path}.requestRedirect", prefixes=place.prefixes
        )
    elif one.type == "URLRewrite" and one.url_rewrite:
        found.rewrite = translate_rewrite(
            one.url_rewrite, report, f"{path}.urlRewrite", prefixes=place.prefixes
        )
    elif one.type == "RequestMirror" and one.request_mirror:
        where = f"{path}.requestMirror"
        _translate_mirror(one.request_mirror, found, place, reader, report, where)
    elif one.type == "CORS" and one.cors:
        found.cors = translate_cors(one.cors, report, f"{path}.cors")
    elif one.type == "ExtensionRef" and one.extension_ref:
        _check_extension(one.extension_ref, place, reader, report, f"{path}.extensionRef")
    elif one.type == "ExternalAuth":
        said = "external authorisation is not available yet; the rule answers 500"
        report.refuse(f"{path}.type", "UnsupportedValue", said)
    else:
        report.refuse(path, "UnsupportedValue", f"{one.type} without its settings")


def _translate_mirror(
    mirror: HTTPRequestMirrorFilter,
    found: Filters,
    place: Place,
    reader: Reader,
    report: Report,
    path: str,
) -> None:
    if mirror.percent is not None and mirror.fraction is not None:
        report.refuse(path, "UnsupportedValue", "percent and fraction exclude each other")
        return
    numerator, denominator = 100, 100
    if mirror.percent is not None:
        numerator = mirror.percent
    elif mirror.fraction is not None:
        numerator, denominator = mirror.fraction.numerator, mirror.fraction.denominator
        if numerator > denominator:
            said = f"{numerator}/{denominator} is more than all requests"
            report.refuse(f"{path}.fraction", "UnsupportedValue", said)
            return
    cluster = resolve_backend(
        mirror.backend_ref,
        place.namespace,
        place.certificate,
        reader,
        report,
        f"{path}.backendRef",
    )
    if cluster is not None and numerator > 0:
        found.clusters.append(cluster)
        found.mirrors.append(
            ir.Mirror(cluster=cluster.id, numerator=numerator, denominator=denominator)
        )


def _check_extension(
    ref: LocalObjectReference, place: Place, reader: Reader, report: Report, path: str
) -> None:
    """Check a RateLimitFilter; the rule is refused in any case until limits are enforced."""
    if ref.group != EDGE_GROUP or ref.kind not in _EXTENSIONS:
        hint = did_you_mean(ref.kind, _EXTENSIONS) if ref.kind not in _EXTENSIONS else ""
        named = ref.kind if ref.group == EDGE_GROUP else f"{ref.group}/{ref.kind}"
        said = supported_text(named, _EXTENSIONS)
        report.refuse(f"{path}.kind", "UnsupportedValue", said, hint)
        report.unresolve(f"{path}.kind", "InvalidKind", said, hint)
        return
    limits = reader.rate_limit_filter(place.namespace, ref.name)
    if limits is None:
        said = f"RateLimitFilter {place.namespace}/{ref.name} not found"
        report.refuse(f"{path}.name", "UnsupportedValue", said)
        report.unresolve(f"{path}.name", "BackendNotFound", said)
        return
    for problem in check_rate_limit(limits).problems:
        report.refuse(path, "UnsupportedValue", problem.text())
    report.refuse(
        path, "UnsupportedValue", f"RateLimitFilter {place.namespace}/{ref.name}: {NOT_YET}"
    )
