"""gRPC match: GRPCRouteMatch -> ir.Match.

In: one match of a rule of a GRPCRoute. Out: its IR: a call is a POST to /service/method. If a part
of it cannot be served, the report has the reason, the rule answers 500 and the match is widened, as
in match.py. Regexes must be RE2.
Source: Gateway API GRPCRouteMatch, GRPCMethodMatch; gRPC over HTTP/2 ("Path"). Matching is
case-sensitive.
Must never: decide precedence (see precedence.py), or let the calls of a refused match go to other
rules.
"""

from __future__ import annotations

import re

from edgefast import ir
from edgefast.api.gateway.grpcroute import GRPCMethodMatch, GRPCRouteMatch
from edgefast.api.model.regex import explain_regex
from edgefast.api.validation.grpcroute import check_method_name, check_service_name
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.match.literal import literal_prefix
from edgefast.translate.match.match import (
    Matched,
    Wrong,
    match_text,
    translate_values,
    widen_values,
)
from edgefast.translate.report.report import Report

#: What a path of any service begins with, and any one segment.
ANY_SERVICE = "/[^/]+/"
_ANY = "[^/]+"
_TYPES: tuple[str, ...] = ("Exact", "RegularExpression")
_META = re.compile(r"[\\.\[\]()*+?{}|^$]")


def translate_call(match: GRPCRouteMatch, report: Report, path: str) -> Matched:
    """Translate one match; `path` is its field path."""
    wrong: Wrong = []
    kind, value = _translate_method(match.method, wrong, f"{path}.method")
    headers = translate_values(match.headers, wrong, report, f"{path}.headers", fold=True)
    made = ir.Match(kind=kind, path=value, method="POST", headers=headers)
    for where, message in wrong:
        report.refuse(
            where, "UnsupportedValue", f"{message}; requests to {match_text(made)} get 500"
        )
    return made, characters_of(match) if wrong else None


def widen_call(match: GRPCRouteMatch) -> Matched:
    """Return a match that accepts any value in place of each regular expression."""
    method, wrong = match.method, Wrong()
    kind: ir.PathKind
    if method is not None and method.type == "RegularExpression":
        kind, value = "regex", ".*"
    else:
        kind, value = _translate_method(method, wrong, "")
    headers = widen_values(match.headers, fold=True)
    made = ir.Match(kind=kind, path=value, method="POST", headers=headers)
    return made, characters_of(match)


def characters_of(match: GRPCRouteMatch) -> int:
    """Return what precedence counts, as one number: the characters of the service, then those of the method."""
    method = match.method
    if method is None:
        return 0
    return len(method.service or "") * 2048 + len(method.method or "")


def service_pattern(path: str) -> str:
    """Return the expression for all calls of a service, as precise as its prefix "/service"."""
    return _META.sub(r"\\\g<0>", path) + "/.*"


def _translate_method(
    method: GRPCMethodMatch | None, wrong: Wrong, path: str
) -> tuple[ir.PathKind, str]:
    if method is None:
        return "prefix", ""
    if method.type not in _TYPES:
        wrong.append((f"{path}.type", supported_text(method.type, _TYPES)))
        return "regex", ".*"
    if method.type == "RegularExpression":
        return "regex", _pattern(method, wrong, path)
    service, name = method.service, method.method
    if message := check_service_name(service):
        wrong.append((f"{path}.service", f'"{service}" ({message})'))
        service = None
    if message := check_method_name(name):
        wrong.append((f"{path}.method", f'"{name}" ({message})'))
        name = None
    if service is None:
        return ("regex", ANY_SERVICE + name) if name is not None else ("prefix", "")
    return ("exact", f"/{service}/{name}") if name is not None else ("prefix", f"/{service}")


def _pattern(method: GRPCMethodMatch, wrong: Wrong, path: str) -> str:
    parts = []
    for name, value in (("service", method.service), ("method", method.method)):
        if value is None:
            parts.append(_ANY)
        elif message := explain_regex(value):
            wrong.append((f"{path}.{name}", message))
            literal = _META.sub(r"\\\g<0>", literal_prefix(value))
            parts.append(f"{literal}{_ANY}" if not literal else f"{literal}[^/]*")
        else:
            parts.append(f"(?:{value})")
    made = f"/{parts[0]}/{parts[1]}"
    if message := explain_regex(made):
        wrong.append((path, message))
        return ".*"
    return made
