"""Matches: HTTPRouteMatch -> ir.Match.

In: one match of a rule. Out: its IR with names folded and paths normalised, or None when a part of
it cannot be served; then the report says which. Regexes must be RE2.
Source: Gateway API HTTPRouteMatch; of entries with equal names the first counts.
Must never: decide precedence (see precedence.py) or drop a predicate silently: a match that lost
one would take requests it was never meant for.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgefast import ir
from edgefast.resources.httproute import (
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPQueryParamMatch,
    HTTPRouteMatch,
)
from edgefast.translate.path import MAX_SEGMENTS, check_path, normalize_path, strip_slash
from edgefast.translate.regex import check_regex
from edgefast.translate.report import Report

#: Methods that the data plane answers with 405 before any routing.
_NEVER_ROUTED = ("CONNECT", "TRACE")


def translate_match(match: HTTPRouteMatch, report: Report, path: str) -> ir.Match | None:
    """Translate one match; `path` is its field path, e.g. spec.rules[0].matches[1]."""
    before = len(report.refused)
    target = _translate_path(match.path, report, path)
    headers = _translate_values(match.headers, report, f"{path}.headers", fold=True)
    query = _translate_values(match.query_params, report, f"{path}.queryParams", fold=False)
    if match.method in _NEVER_ROUTED:
        report.warn(
            f"{path}.method", "NotSupported", f"{match.method} is answered 405 before routing"
        )
    if target is None or len(report.refused) > before:
        return None
    kind, value = target
    return ir.Match(kind=kind, path=value, method=match.method or "", headers=headers, query=query)


def _translate_path(
    match: HTTPPathMatch, report: Report, path: str
) -> tuple[ir.PathKind, str] | None:
    if match.type == "RegularExpression":
        wrong = check_regex(match.value)
        if wrong:
            _refuse_regex(report, f"{path}.path.value", match.value, wrong)
            return None
        return "regex", match.value
    wrong = check_path(match.value)
    if (
        not wrong
        and match.type == "PathPrefix"
        and strip_slash(match.value).count("/") > MAX_SEGMENTS
    ):
        wrong = f"must have at most {MAX_SEGMENTS} segments"
    if wrong:
        report.refuse(f"{path}.path.value", "UnsupportedValue", f'"{match.value}" {wrong}')
        return None
    value = normalize_path(match.value)
    return ("exact", value) if match.type == "Exact" else ("prefix", strip_slash(value))


def _translate_values(
    matches: Sequence[HTTPHeaderMatch | HTTPQueryParamMatch],
    report: Report,
    path: str,
    *,
    fold: bool,
) -> tuple[ir.ValueMatch, ...]:
    if not matches:
        return ()
    values: dict[str, ir.ValueMatch] = {}
    for at, match in enumerate(matches):
        name = match.name.lower() if fold else match.name
        regex = match.type == "RegularExpression"
        wrong = check_regex(match.value) if regex else ""
        if wrong:
            _refuse_regex(report, f"{path}[{at}].value", match.value, wrong)
        if name in values:
            report.warn(
                f"{path}[{at}].name", "Duplicate", f'"{match.name}" is ignored, the first counts'
            )
            continue
        values[name] = ir.ValueMatch(name=name, value=match.value, regex=regex)
    return tuple(values[name] for name in sorted(values))


def _refuse_regex(report: Report, path: str, pattern: str, wrong: str) -> None:
    report.refuse(path, "UnsupportedValue", f'"{pattern}" is not an RE2 expression: {wrong}')
