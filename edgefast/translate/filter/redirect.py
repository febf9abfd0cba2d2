"""Redirect: RequestRedirect, URLRewrite and the path modifier that they share.

In: the filter's payload and whether every match of the rule is a PathPrefix.
Out: ir.Redirect, ir.Rewrite, or None when refused. A prefix replacement needs a prefix match.
Source: Gateway API HTTPRequestRedirectFilter, HTTPURLRewriteFilter, HTTPPathModifier.
Must never: apply the port rules of redirects; those need the request and are in the data plane.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.gateway.httproutefilter import (
    HTTPPathModifier,
    HTTPRequestRedirectFilter,
    HTTPURLRewriteFilter,
)
from edgefast.api.validation.hostname import check_own_hostname
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.match.path import check_path, normalize_path, strip_slash
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

_MODIFIERS = ("ReplaceFullPath", "ReplacePrefixMatch")
_SCHEMES: tuple[str, ...] = ("http", "https")
_STATUSES: tuple[int, ...] = (301, 302, 303, 307, 308)


def translate_redirect(
    redirect: HTTPRequestRedirectFilter, report: Report, path: str, *, prefixes: bool
) -> ir.Redirect | None:
    """Translate a RequestRedirect; `prefixes` tells that all matches of the rule are prefixes."""
    before = len(report.refused)
    refuse_violations(check_own_hostname(redirect), report, path)
    if redirect.scheme is not None and redirect.scheme not in _SCHEMES:
        message = supported_text(redirect.scheme, _SCHEMES)
        report.refuse(f"{path}.scheme", "UnsupportedValue", message)
    if redirect.status_code not in _STATUSES:
        message = supported_text(str(redirect.status_code), tuple(map(str, _STATUSES)))
        report.refuse(f"{path}.statusCode", "UnsupportedValue", message)
    target = _translate_modifier(redirect.path, report, f"{path}.path", prefixes)
    if len(report.refused) > before:
        return None
    return ir.Redirect(
        status=redirect.status_code,
        scheme=redirect.scheme or "",
        hostname=redirect.hostname or "",
        port=redirect.port or 0,
        path=target,
    )


def translate_rewrite(
    rewrite: HTTPURLRewriteFilter, report: Report, path: str, *, prefixes: bool
) -> ir.Rewrite | None:
    """Translate a URLRewrite; `prefixes` as in `translate_redirect`."""
    before = len(report.refused)
    refuse_violations(check_own_hostname(rewrite), report, path)
    target = _translate_modifier(rewrite.path, report, f"{path}.path", prefixes)
    if len(report.refused) > before:
        return None
    return ir.Rewrite(hostname=rewrite.hostname or "", path=target)


def _translate_modifier(
    modifier: HTTPPathModifier | None, report: Report, path: str, prefixes: bool
) -> ir.PathRewrite | None:
    if modifier is None:
        return None
    if modifier.type not in _MODIFIERS:
        report.refuse(f"{path}.type", "UnsupportedValue", supported_text(modifier.type, _MODIFIERS))
        return None
    if modifier.type == "ReplaceFullPath":
        value, field = modifier.replace_full_path or "/", "replaceFullPath"
    else:
        value, field = modifier.replace_prefix_match or "/", "replacePrefixMatch"
        if not prefixes:
            message = "is allowed only in a rule with all matches of type PathPrefix"
            report.refuse(f"{path}.{field}", "UnsupportedValue", message)
            return None
    wrong = check_path(value)
    if wrong:
        report.refuse(f"{path}.{field}", "UnsupportedValue", f'"{value}" {wrong}')
        return None
    value = normalize_path(value)
    if modifier.type == "ReplaceFullPath":
        return ir.PathRewrite(kind="full", value=value)
    return ir.PathRewrite(kind="prefix", value=strip_slash(value))
