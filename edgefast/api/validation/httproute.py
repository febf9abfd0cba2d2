"""HTTPRoute: rules about paths, whole rules, timeouts and retries.

In: parts of an HTTPRoute. Out: violations.
Source: CEL of the Gateway API v1.6 HTTPRoute CRD.
Must never: refuse what the API accepts and only this product lacks; that goes to the status.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgefast.api.gateway.grpcroute import GRPCRouteMatch, GRPCRouteRule, GRPCRouteSpec
from edgefast.api.gateway.httproute import (
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPQueryParamMatch,
    HTTPRouteMatch,
    HTTPRouteRule,
    HTTPRouteSpec,
    HTTPRouteTimeouts,
)
from edgefast.api.gateway.httproutefilter import HTTPPathModifier, HTTPRouteFilter
from edgefast.api.loaded import Path
from edgefast.api.model.regex import explain_regex
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

MAX_MATCHES = 128
_PATH = re.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})+")
#: Beside what `_PATH` refuses; none of these can match a normalised request path.
_PATH_TRAPS = re.compile(r"//|/\.\.?/|%2[fF]|/\.\.?\Z")


@BOOK.on(HTTPPathMatch, "type", "value")
def check_path(path: HTTPPathMatch) -> Iterable[Violation]:
    """Exact and PathPrefix values are absolute, normalised paths."""
    if path.value == "/" or path.type == "RegularExpression":
        return ()
    message = check_literal(path.value)
    return (Violation(("value",), "Invalid", f'"{path.value}" ({message})'),) if message else ()


def check_literal(value: str) -> str:
    """Return what is wrong with a path that is no expression, "" when nothing is."""
    if not value.startswith("/"):
        return "must begin with /"
    trap = _PATH_TRAPS.search(value)
    if trap:
        where = "must not end with" if value.endswith(trap[0]) else "must not contain"
        return f"{where} {trap[0]}"
    if not _PATH.fullmatch(value):
        return "must only have characters of a URI path (RFC 3986)"
    return ""


@BOOK.on(HTTPPathMatch, "type", "value", late=True)
@BOOK.on(HTTPHeaderMatch, "type", "value", late=True)
@BOOK.on(HTTPQueryParamMatch, "type", "value", late=True)
def check_expression(
    one: HTTPPathMatch | HTTPHeaderMatch | HTTPQueryParamMatch,
) -> Iterable[Violation]:
    """Expressions are RE2; in a route that is otherwise sound only their rule is refused."""
    name = "" if isinstance(one, HTTPPathMatch) else one.name
    message = explain_regex(one.value, name) if one.type == "RegularExpression" else ""
    if message:
        yield Violation(("value",), "UnsupportedValue", message)


@BOOK.on(HTTPRouteMatch, "headers", late=True)
@BOOK.on(GRPCRouteMatch, "headers", late=True)
def check_folded_names(match: HTTPRouteMatch | GRPCRouteMatch) -> Iterable[Violation]:
    """Header names have no case, so of two that differ in it alone the first counts."""
    names: set[str] = set()
    for index, one in enumerate(match.headers):
        name = one.name.lower()
        if name in names:
            message = f'"{one.name}" is a duplicate and ignored'
            yield Violation(("headers", index, "name"), "Duplicate", message, severity="warning")
        names.add(name)


@BOOK.on(HTTPRouteRule, "filters", "backend_refs")
def check_redirect(rule: HTTPRouteRule) -> Iterable[Violation]:
    """A redirect answers by itself, so it has no backends."""
    if not rule.filters or not rule.backend_refs:
        return
    for index, one in enumerate(rule.filters):
        if one.request_redirect is not None:
            yield Violation(
                ("filters", index), "Forbidden", "RequestRedirect together with backendRefs"
            )


@BOOK.on(HTTPRouteRule, "filters", "backend_refs", "matches")
def check_prefix_replacement(rule: HTTPRouteRule) -> Iterable[Violation]:
    """ReplacePrefixMatch needs to know the one prefix it replaces."""
    if len(rule.matches) == 1 and rule.matches[0].path.type == "PathPrefix":
        return
    for path, modifier in _path_modifiers(rule):
        if modifier.type == "ReplacePrefixMatch":
            yield Violation(
                (*path, "path", "type"),
                "Invalid",
                '"ReplacePrefixMatch" (the rule must have exactly one match, of type PathPrefix)',
            )


def _path_modifiers(rule: HTTPRouteRule) -> Iterable[tuple[Path, HTTPPathModifier]]:
    yield from _modifiers_of(rule.filters, ())
    for index, backend in enumerate(rule.backend_refs):
        yield from _modifiers_of(backend.filters, ("backendRefs", index))


def _modifiers_of(
    filters: tuple[HTTPRouteFilter, ...], at: Path
) -> Iterable[tuple[Path, HTTPPathModifier]]:
    for index, one in enumerate(filters):
        if one.request_redirect is not None and one.request_redirect.path is not None:
            yield (*at, "filters", index, "requestRedirect"), one.request_redirect.path
        if one.url_rewrite is not None and one.url_rewrite.path is not None:
            yield (*at, "filters", index, "urlRewrite"), one.url_rewrite.path


@BOOK.on(HTTPRouteSpec, "rules")
@BOOK.on(GRPCRouteSpec, "rules")
def check_rules(spec: HTTPRouteSpec | GRPCRouteSpec) -> Iterable[Violation]:
    """Rule names differ, and a route has 128 matches at most."""
    rules: tuple[HTTPRouteRule | GRPCRouteRule, ...] = spec.rules
    if sum(len(rule.matches) for rule in rules) > MAX_MATCHES:
        total = sum(len(rule.matches) for rule in rules)
        yield Violation(
            ("rules",), "TooMany", f"{total} matches in all rules (at most {MAX_MATCHES})"
        )
    names: set[str] = set()
    for index, rule in enumerate(rules):
        if rule.name is None:
            continue
        if rule.name in names:
            yield Violation(("rules", index, "name"), "Duplicate", f'"{rule.name}"')
        names.add(rule.name)


@BOOK.on(HTTPRouteTimeouts, "request", "backend_request")
def check_timeouts(timeouts: HTTPRouteTimeouts) -> Iterable[Violation]:
    """A try cannot last longer than the request it is part of; 0s means no limit."""
    if timeouts.request is None or timeouts.backend_request is None:
        return ()
    whole = parse_duration(timeouts.request)
    if whole and parse_duration(timeouts.backend_request) > whole:
        return (
            Violation(
                ("backendRequest",),
                "Invalid",
                f'"{timeouts.backend_request}" (at most request, {timeouts.request})',
            ),
        )
    return ()
