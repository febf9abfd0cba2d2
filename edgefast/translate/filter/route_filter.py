r"""Route filter: HTTPRouteFilter -> the rewrite, direct response and matches of a rule.

In: an HTTPRouteFilter, a Reader for the ConfigMap of its body.
Out: every mistake in it (`check_route_filter`), and a `RouteFilter` of one without mistakes.
Source: the kind's own rules, and what a schema cannot express: `\2` needs a second group.
Must never: translate a filter that has mistakes; a required response or match would be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from edgefast import ir
from edgefast.api.edge.httproutefilter import (
    DirectResponse,
    HTTPCookieMatch,
    HTTPRouteFilter,
    RedirectForm,
    RegexPathModifier,
)
from edgefast.api.kinds import ref_of
from edgefast.api.model.regex import check_regex, count_groups
from edgefast.api.validation.route_filter import (
    check_answer,
    check_body,
    check_body_size,
    check_cookie,
    check_cookie_regex,
    check_form,
    check_modifier,
    check_pattern,
    check_spec,
    check_value_ref,
)
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.filter.redirect_location import check_location
from edgefast.translate.policy.response_body import read_body
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import refuse_unserved
from edgefast.translate.report.violation import refuse_violations

__all__ = ["RouteFilter", "check_route_filter", "read_answer", "translate_route_filter"]

#: What begins the name of a predicate on a cookie; no header can be called so.
COOKIE = "cookie:"
_MATCHES = 8
_COOKIES = 16
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}")
_VALUE = re.compile(r"[!-~]+([\t ][!-~]+)*")
_SUBSTITUTION = re.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2}|\\[0-9]){0,1024}")
_GROUP = re.compile(r"\\([0-9])")


class RouteFilter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one HTTPRouteFilter comes to; matches: one of them must hold, of each all predicates; (): there is no condition."""

    name: str  # "namespace/name"
    rewrite: ir.PathRewrite | None = None
    direct: ir.DirectResponse | None = None
    form: RedirectForm | None = None  # of the rule's RequestRedirect
    http2: bool = False  # backends get HTTP/2
    matches: tuple[tuple[ir.ValueMatch, ...], ...] = ()


def check_route_filter(one: HTTPRouteFilter) -> Report:
    """Report every mistake in an HTTPRouteFilter; an API server with other CRDs may have let it in."""
    report, spec = Report(ref_of(one)), one.spec
    refuse_unserved(one, report, "requests to rules with the filter get 500", reason="NotSupported")
    refuse_violations(check_spec(spec), report, "spec")
    refuse_violations(check_form(spec), report, "spec")
    if spec.redirect is not None:
        _check_form(spec.redirect, report, "spec.redirect")
    if spec.backend_protocol is not None:
        _check_word(spec.backend_protocol, ("HTTP2",), report, "spec.backendProtocol")
    if spec.url_rewrite is not None:
        _check_rewrite(spec.url_rewrite.path, report, "spec.urlRewrite.path")
    if spec.direct_response is not None:
        _check_direct(spec.direct_response, report, "spec.directResponse")
    if len(spec.matches) > _MATCHES:
        message = f"{len(spec.matches)} matches, at most {_MATCHES}"
        report.refuse("spec.matches", "TooMany", message)
    for at, match in enumerate(spec.matches):
        path = f"spec.matches[{at}].cookies"
        if not 1 <= len(match.cookies) <= _COOKIES:
            report.refuse(
                path, "Invalid", f"{len(match.cookies)} cookies (expected 1 to {_COOKIES})"
            )
        names: set[str] = set()
        for index, cookie in enumerate(match.cookies):
            _check_cookie(cookie, names, report, f"{path}[{index}]")
    return report


def _check_word(word: str, words: tuple[str, ...], report: Report, path: str) -> bool:
    if word in words:
        return True
    report.refuse(path, "NotSupported", supported_text(word, words), did_you_mean(word, words))
    return False


def _check_rewrite(one: RegexPathModifier, report: Report, path: str) -> None:
    if not _check_word(one.type, ("ReplaceRegexMatch",), report, f"{path}.type"):
        return
    refuse_violations(check_modifier(one), report, path)
    found = one.replace_regex_match
    if found is None:
        return
    path = f"{path}.replaceRegexMatch"
    if not refuse_violations(check_pattern(found), report, path) and not found.pattern:
        report.refuse(f"{path}.pattern", "Required", "must not be empty")
    if not _SUBSTITUTION.fullmatch(found.substitution):
        message = r"must be characters of a path, with \1 to \9 for groups"
        report.refuse(f"{path}.substitution", "Invalid", f'"{found.substitution}" ({message})')
    elif not check_regex(found.pattern):
        groups = count_groups(found.pattern)
        most = max(map(int, _GROUP.findall(found.substitution)), default=0)
        if most > groups:
            message = (
                rf"\{most} (the pattern has {groups or 'no'} group{'' if groups == 1 else 's'})"
            )
            report.refuse(f"{path}.substitution", "Invalid", message)


def _check_form(one: RedirectForm, report: Report, path: str) -> None:
    _check_word(one.trailing_slash, ("Keep", "Remove"), report, f"{path}.trailingSlash")
    _check_word(one.port, ("Default", "Always"), report, f"{path}.port")
    _check_word(one.query, ("Keep", "Remove"), report, f"{path}.query")
    if one.location is not None:
        check_location(one.location, report, f"{path}.location")


def _check_direct(one: DirectResponse, report: Report, path: str) -> None:
    if not 200 <= one.status_code <= 599:
        message = f"{one.status_code} (expected 200 to 599)"
        report.refuse(f"{path}.statusCode", "Invalid", message)
    if one.content_type is not None and not _VALUE.fullmatch(one.content_type):
        report.refuse(f"{path}.contentType", "Invalid", "must be visible ASCII, no line breaks")
    refuse_violations(check_answer(one), report, path)
    body, path = one.body, f"{path}.body"
    if body is None or not _check_word(body.type, ("Inline", "ValueRef"), report, f"{path}.type"):
        return
    for check in (check_body, check_body_size, check_value_ref):
        refuse_violations(check(body), report, path)


def _check_cookie(one: HTTPCookieMatch, names: set[str], report: Report, path: str) -> None:
    if not _TOKEN.fullmatch(one.name):
        report.refuse(f"{path}.name", "Invalid", f'"{one.name}" is not the name of a cookie')
    if one.name in names:
        report.refuse(f"{path}.name", "Duplicate", f'"{one.name}"')
    names.add(one.name)
    if _check_word(one.type, ("Exact", "RegularExpression"), report, f"{path}.type"):
        refuse_violations(check_cookie(one), report, path)
        refuse_violations(check_cookie_regex(one), report, path)


def translate_route_filter(one: HTTPRouteFilter, body: bytes) -> RouteFilter:
    """Translate a sound filter; `body` is that of its answer."""
    spec, meta = one.spec, one.metadata
    found = spec.url_rewrite.path.replace_regex_match if spec.url_rewrite else None
    direct = spec.direct_response
    return RouteFilter(
        name=f"{meta.namespace}/{meta.name}",
        rewrite=ir.PathRewrite(kind="regex", value=found.substitution, pattern=found.pattern)
        if found
        else None,
        direct=ir.DirectResponse(
            status=direct.status_code, content_type=direct.content_type or "", body=body
        )
        if direct
        else None,
        form=spec.redirect,
        http2=spec.backend_protocol == "HTTP2",
        matches=tuple(dict.fromkeys(_translate_cookies(match.cookies) for match in spec.matches)),
    )


def _translate_cookies(cookies: Iterable[HTTPCookieMatch]) -> tuple[ir.ValueMatch, ...]:
    return tuple(
        ir.ValueMatch(f"{COOKIE}{one.name}", one.value, one.type == "RegularExpression")
        for one in sorted(cookies, key=lambda one: one.name)
    )


def read_answer(one: HTTPRouteFilter, reader: Reader) -> tuple[bytes, str]:
    """Return the body of a sound filter's answer, and what is wrong with where it is, "" when nothing is."""
    direct = one.spec.direct_response
    if direct is None or direct.body is None:
        return b"", ""
    return read_body(direct.body, one.metadata.namespace, reader)
