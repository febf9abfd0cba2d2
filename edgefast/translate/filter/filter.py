"""Filter: the filters of a rule or of a backendRef -> their IR.

In: HTTPRouteFilters. Out: `Filters`, with a problem for each that cannot be served. The data plane applies filters in a fixed order: CORS,
external authorization, redirect, headers, rewrite, mirror. One filter of each kind is allowed, except mirrors and extensions. The rules of
the kind define which filters exclude each other; this module does so for extensions.
Source: Gateway API HTTPRouteFilter. An unresolved extension must fail requests, not be skipped.
Must never: omit a filter silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from edgefast import ir
from edgefast.api.edge.httproutefilter import RedirectForm
from edgefast.api.edge.ratelimitfilter import RateLimitFilter
from edgefast.api.gateway.grpcroute import GRPCRouteFilter
from edgefast.api.gateway.httproutefilter import (
    HTTPExternalAuthFilter,
    HTTPRequestMirrorFilter,
    HTTPRouteFilter,
)
from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.reference import LocalObjectReference
from edgefast.api.validation.filter import check_fraction, check_mirror_share
from edgefast.diagnostics.problem import Problem, did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.filter.cors import translate_cors
from edgefast.translate.filter.external_auth import translate_external_auth
from edgefast.translate.filter.header import translate_headers
from edgefast.translate.filter.redirect import translate_redirect, translate_rewrite
from edgefast.translate.filter.route_filter import (
    RouteFilter,
    check_route_filter,
    read_answer,
    translate_route_filter,
)
from edgefast.translate.rate_limit.rate_limit import check_rate_limit
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

_REPEATABLE = ("RequestMirror", "ExtensionRef")
#: Kinds of extensions, by kind of route.
_EXTENSIONS = {
    "HTTPRoute": ("RateLimitFilter", "HTTPRouteFilter"),
    "GRPCRoute": ("RateLimitFilter",),
}
_ALL_RULES = (
    "spec.rules"  # what all RateLimitFilters of a route lack is told of them together, once
)
_TYPES: dict[str, tuple[str, ...]] = {
    "HTTPRoute": (
        "RequestHeaderModifier",
        "ResponseHeaderModifier",
        "RequestRedirect",
        "URLRewrite",
        "RequestMirror",
        "CORS",
        "ExternalAuth",
        "ExtensionRef",
    ),
    "GRPCRoute": (
        "RequestHeaderModifier",
        "ResponseHeaderModifier",
        "RequestMirror",
        "ExtensionRef",
    ),
}


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where filters stand: what their translation depends on beside themselves."""

    namespace: str  # of the route
    certificate: str  # of the Gateway, "namespace/secret" or ""
    kind: str  # of the route
    http2: bool = False  # backends get HTTP/2, whatever the appProtocol of the port
    prefixes: bool  # all matches of the rule are PathPrefix
    limits: bool = True  # ExternalAuth, RateLimitFilters and HTTPRouteFilters are allowed: it is the rule itself


class Filters:
    """What a list of filters comes to."""

    __slots__ = (
        "clusters",
        "cors",
        "direct",
        "extensions",
        "ext_auth",
        "http2",
        "limits",
        "mirrors",
        "redirect",
        "request_headers",
        "response_headers",
        "rewrite",
        "unknown",
    )

    def __init__(self) -> None:
        self.request_headers: ir.HeaderOps | None = None
        self.response_headers: ir.HeaderOps | None = None
        self.redirect: ir.Redirect | None = None
        self.rewrite: ir.Rewrite | None = None
        self.mirrors: list[ir.Mirror] = []
        self.cors: ir.Cors | None = None
        self.ext_auth: ir.ExtAuth | None = None
        self.direct: ir.DirectResponse | None = None
        self.limits: list[RateLimitFilter] = []
        self.extensions: list[RouteFilter] = []
        self.http2 = False  # an HTTPRouteFilter asks for HTTP/2 with backends
        self.unknown = False  # a filter that is broken may have had matches
        self.clusters: list[ClusterRef] = []


def translate_filters(
    filters: Sequence[HTTPRouteFilter | GRPCRouteFilter],
    place: Place,
    reader: Reader,
    report: Report,
    path: str,
) -> Filters:
    """Translate filters in order; `path` is the field path of the list."""
    found = Filters()
    if not filters:
        return found
    seen: set[str] = set()
    for at, one in enumerate(filters):
        if one.type not in seen or one.type in _REPEATABLE:
            plain = one if isinstance(one, HTTPRouteFilter) else _plain(one)
            _translate(plain, found, place, reader, report, f"{path}[{at}]")
        elif one.type == "ExternalAuth":
            message = "a second ExternalAuth (at most once in a list); the rule answers 500"
            report.refuse(f"{path}[{at}].type", "IncompatibleFilters", message)
        seen.add(one.type)
    _combine(found, report, path)
    return found


def _combine(found: Filters, report: Report, path: str) -> None:
    """Take from HTTPRouteFilters what they bring, and refuse what does not go together."""
    for one in found.extensions:
        named = f"HTTPRouteFilter {one.name}"
        beside = ""
        if one.direct is not None:
            beside = (
                ("RequestRedirect" if found.redirect else "")
                or ("a urlRewrite" if found.rewrite else "")
                or ("another directResponse" if found.direct else "")
            )
            message = f"directResponse of {named} beside {beside}"
            found.direct = one.direct
        elif one.rewrite is not None:
            beside = (
                ("RequestRedirect" if found.redirect else "")
                or ("a directResponse" if found.direct else "")
                or ("another rewrite of the path" if found.rewrite and found.rewrite.path else "")
            )
            message = f"urlRewrite of {named} beside {beside}"
            hostname = found.rewrite.hostname if found.rewrite else ""
            found.rewrite = ir.Rewrite(hostname=hostname, path=one.rewrite)
        elif one.form is not None:
            _form_redirect(one.form, named, found, report, path)
        found.http2 = found.http2 or one.http2
        if beside:
            report.refuse(path, "IncompatibleFilters", message)


def _form_redirect(
    form: RedirectForm, named: str, found: Filters, report: Report, path: str
) -> None:
    if found.redirect is None:
        message = f"redirect of {named} without RequestRedirect in the rule"
        report.refuse(path, "IncompatibleFilters", message)
        return
    found.redirect = msgspec.structs.replace(
        found.redirect,
        trim_slash=form.trailing_slash == "Remove",
        write_port=form.port == "Always",
        drop_query=form.query == "Remove",
        template=form.location.template if form.location is not None else "",
        pattern=(form.location.pattern or "") if form.location is not None else "",
    )


def _plain(one: GRPCRouteFilter) -> HTTPRouteFilter:
    """Filters of GRPCRoutes are some of those of HTTPRoutes, in the same words."""
    return HTTPRouteFilter(
        type=one.type,
        request_header_modifier=one.request_header_modifier,
        response_header_modifier=one.response_header_modifier,
        request_mirror=one.request_mirror,
        extension_ref=one.extension_ref,
    )


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
        where = f"{path}.extensionRef"
        _resolve_extension(one.extension_ref, found, place, reader, report, where)
    elif one.type == "ExternalAuth" and one.external_auth:
        _ask(one.external_auth, found, place, reader, report, path)
    elif one.type not in _TYPES[place.kind]:
        message = supported_text(one.type, _TYPES[place.kind])
        report.refuse(f"{path}.type", "UnsupportedValue", message)
    else:
        report.refuse(path, "UnsupportedValue", f"{one.type} without its settings")


def _ask(
    auth: HTTPExternalAuthFilter,
    found: Filters,
    place: Place,
    reader: Reader,
    report: Report,
    path: str,
) -> None:
    if not place.limits:
        message = "ExternalAuth in a backendRef (supported: in the filters of a rule)"
        report.refuse(f"{path}.type", "UnsupportedValue", message)
        return
    where, unresolved = f"{path}.externalAuth", len(report.unresolved)
    made = translate_external_auth(
        auth, place.namespace, place.certificate, reader, report, where, place.kind
    )
    if made is not None:
        found.ext_auth, cluster = made
        found.clusters.append(cluster)
    # Nobody can be asked, so the rule is broken: one mistake, in both conditions.
    for problem in report.unresolved[unresolved:]:
        report.adopt(problem, condition="UnsupportedValue")


def _translate_mirror(
    mirror: HTTPRequestMirrorFilter,
    found: Filters,
    place: Place,
    reader: Reader,
    report: Report,
    path: str,
) -> None:
    if refuse_violations(check_mirror_share(mirror), report, path):
        return
    numerator, denominator = 100, 100
    if mirror.percent is not None:
        numerator = mirror.percent
    elif mirror.fraction is not None:
        numerator, denominator = mirror.fraction.numerator, mirror.fraction.denominator
        if refuse_violations(check_fraction(mirror.fraction), report, f"{path}.fraction"):
            return
    cluster = resolve_backend(
        mirror.backend_ref,
        place.namespace,
        place.certificate,
        reader,
        report,
        f"{path}.backendRef",
        kind=place.kind,
    )
    if cluster is not None and numerator > 0:
        found.clusters.append(cluster)
        found.mirrors.append(
            ir.Mirror(cluster=reader.name_of(cluster), numerator=numerator, denominator=denominator)
        )


def _resolve_extension(
    ref: LocalObjectReference,
    found: Filters,
    place: Place,
    reader: Reader,
    report: Report,
    path: str,
) -> None:
    """Find an extension; without one that works Accepted and ResolvedRefs are both false."""
    if ref.group != EDGE_GROUP or ref.kind not in _EXTENSIONS[place.kind]:
        _refuse_extension(ref, _EXTENSIONS[place.kind], report, path)
    elif not place.limits:
        message = f"{ref.kind} in a backendRef (supported: in the filters of a rule)"
        report.refuse(f"{path}.kind", "NotSupported", message, condition="UnsupportedValue")
    elif ref.kind == "HTTPRouteFilter":
        _resolve_route_filter(ref, found, place, reader, report, path)
    else:
        _resolve_rate_limit(ref, found, place, reader, report, path)


def _resolve_route_filter(
    ref: LocalObjectReference,
    found: Filters,
    place: Place,
    reader: Reader,
    report: Report,
    path: str,
) -> None:
    named, where = f"HTTPRouteFilter {place.namespace}/{ref.name}", f"{path}.name"
    one = reader.http_route_filter(place.namespace, ref.name)
    if one is None:
        found.unknown = True
        _miss(where, f"{named} not found", report)
        return
    if one.closed is not None:
        found.unknown = True
        _refuse_closed(one.closed, named, where, reader, report)
        return
    if wrong := check_route_filter(one).problems:
        found.unknown = found.unknown or bool(one.spec.matches)
        _refuse_broken(wrong, named, where, report)
        return
    body, lost = read_answer(one, reader)
    if lost:
        _miss(where, f"{named}: {lost}", report)
    found.extensions.append(translate_route_filter(one, body))


def _miss(where: str, message: str, report: Report) -> None:
    report.refuse(where, "NotFound", message, condition="UnsupportedValue")
    report.unresolve(where, "NotFound", message, condition="BackendNotFound")


def _refuse_closed(closed: Closed, named: str, where: str, reader: Reader, report: Report) -> None:
    """Say what keeps an extension out; of a file that is told at its own place, too."""
    message = f"{named} {closed.path or 'spec'}: {closed.reason}"
    reported = report.refuse(where, "Invalid", message, condition="UnsupportedValue")
    if reader.settings.standalone:
        report.follow(reported)
    report.follow(report.unresolve(where, "Invalid", message, condition="BackendNotFound"))


def _refuse_broken(wrong: Iterable[Problem], named: str, where: str, report: Report) -> None:
    """Say that an extension has mistakes of its own, which are told there."""
    for problem in wrong:
        report.adopt(problem, condition="UnsupportedValue")
    message = f"{named} is not valid"
    report.follow(report.unresolve(where, "Invalid", message, condition="BackendNotFound"))


def _resolve_rate_limit(
    ref: LocalObjectReference,
    found: Filters,
    place: Place,
    reader: Reader,
    report: Report,
    path: str,
) -> None:
    """A missing store is one mistake, in the same words whichever filter or rule of the route meets it."""
    named, where = f"RateLimitFilter {place.namespace}/{ref.name}", f"{path}.name"
    limits = reader.rate_limit_filter(place.namespace, ref.name)
    why = reader.why_no_limits()
    reason: Word
    if limits is None:
        reason, message = "NotFound", f"{named} not found"
    elif limits.closed is not None:
        _refuse_closed(limits.closed, named, where, reader, report)
        return
    elif wrong := tuple(check_rate_limit(limits).refused):
        _refuse_broken(wrong, named, where, report)
        return
    elif why and limits.spec.type != "Local":
        # The filter exists and its reference resolves; only the configuration of the store is missing.
        report.refuse(_ALL_RULES, "NotSupported", why, condition="UnsupportedValue")
        return
    else:
        found.limits.append(limits)
        return
    report.refuse(where, reason, message, condition="UnsupportedValue")
    report.unresolve(where, reason, message, condition="BackendNotFound")


def _refuse_extension(
    ref: LocalObjectReference, known: tuple[str, ...], report: Report, path: str
) -> None:
    """Say once which extensions there are; both Accepted and ResolvedRefs are false for it."""
    if ref.kind in known:
        field, message, hint = "group", supported_text(ref.group, (EDGE_GROUP,)), ""
    elif ref.group == EDGE_GROUP and ref.kind in _EXTENSIONS["HTTPRoute"]:
        message = f"{ref.kind} in a route other than HTTPRoute (supported: {', '.join(known)})"
        field, hint = "kind", ""
    else:
        named = ref.kind if ref.group == EDGE_GROUP else f"{ref.group}/{ref.kind}"
        field, message = "kind", supported_text(named, known)
        hint = did_you_mean(ref.kind, known) if ref.group == EDGE_GROUP else ""
    where = f"{path}.{field}"
    report.refuse(where, "NotSupported", message, hint, condition="UnsupportedValue")
    report.unresolve(where, "NotSupported", message, hint, condition="InvalidKind")
