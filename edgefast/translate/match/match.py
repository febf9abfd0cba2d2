"""Match: HTTPRouteMatch -> ir.Match.

In: one match of a rule. Out: its IR with names folded and paths normalised. If a part of it cannot
be served, the report has the reason and the rule answers 500. The match is then widened to what is
known of its requests: all that begins as a refused expression does, any value of a refused header.
A refused expression keeps its precedence before prefixes of any length, as a valid one would have.
Regexes must be RE2.
Source: Gateway API HTTPRouteMatch; of entries with equal names the first counts.
Must never: decide precedence (see precedence.py), or let the requests of a refused match go to
other rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgefast import ir
from edgefast.api.gateway.httproute import (
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPQueryParamMatch,
    HTTPRouteMatch,
)
from edgefast.api.model.regex import explain_regex
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.match.literal import literal_prefix
from edgefast.translate.match.path import (
    MAX_SEGMENTS,
    check_path,
    check_segments,
    normalize_path,
    strip_slash,
)
from edgefast.translate.report.report import Report

#: Methods that the data plane answers with 405 before any routing.
_NEVER_ROUTED = ("CONNECT", "TRACE")
#: A regex for any value at all, line breaks included.
_ANY_VALUE = "(?s).*"
_PATH_TYPES: tuple[str, ...] = ("Exact", "PathPrefix", "RegularExpression")
_VALUE_TYPES: tuple[str, ...] = ("Exact", "RegularExpression")
#: Those of HTTPMethod; the API has others refused, also where a proxy could match them.
_ROUTED: tuple[str, ...] = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")

#: A regex for any path, and one for what is below the literal before it.
_ANY_PATH = ".*"
_BELOW = "(/.*)?"
#: What means something in RE2 where a literal does not.
_META = re.compile(r"[\\.\[\]()*+?{}|^$]")

_Target = tuple[ir.PathKind, str]
Wrong = list[tuple[str, str]]  # field path, what is wrong with it


#: A match in the IR; of one that takes more than was written, how long the path was that was.
Matched = tuple[ir.Match, int | None]


def translate_match(match: HTTPRouteMatch, report: Report, path: str) -> Matched:
    """Translate one match; `path` is its field path, e.g. spec.rules[0].matches[1]."""
    wrong: Wrong = []
    target = _translate_path(match.path, wrong, f"{path}.path")
    headers = translate_values(match.headers, wrong, report, f"{path}.headers", fold=True)
    query = translate_values(match.query_params, wrong, report, f"{path}.queryParams", fold=False)
    if match.method in _NEVER_ROUTED:
        report.lose(f"{path}.method", "NotSupported", f"{match.method} gets 405 before routing")
    elif match.method is not None and match.method not in _ROUTED:
        wrong.append((f"{path}.method", supported_text(match.method, _ROUTED)))
    kind, value = target
    method = match.method or ""
    made = ir.Match(kind=kind, path=value, method=method, headers=headers, query=query)
    for where, message in wrong:
        report.refuse(
            where, "UnsupportedValue", f"{message}; requests to {match_text(made)} get 500"
        )
    if not wrong:
        return made, None
    return made, max(len(value), len(match.path.value) if kind == "regex" else 0)


def widen_match(match: HTTPRouteMatch) -> Matched:
    """Return a match that accepts any value in place of each regular expression, and every path with the literal prefix of its path's."""
    path = match.path
    if path.type == "RegularExpression":
        literal = literal_prefix(path.value)
        target: _Target = ("regex", _META.sub(r"\\\g<0>", literal) + _ANY_PATH)
    else:
        target = _translate_path(path, [], "")
    kind, value = target
    made = ir.Match(
        kind=kind,
        path=value,
        method=match.method or "",
        headers=widen_values(match.headers, fold=True),
        query=widen_values(match.query_params, fold=False),
    )
    return made, max(len(value), len(path.value))


def widen_values(
    matches: Sequence[HTTPHeaderMatch | HTTPQueryParamMatch], *, fold: bool
) -> tuple[ir.ValueMatch, ...]:
    """Return conditions on values; a regular expression becomes any value."""
    values: dict[str, ir.ValueMatch] = {}
    for match in matches:
        name, exact = match.name.lower() if fold else match.name, match.type == "Exact"
        value = match.value if exact else _ANY_VALUE
        values.setdefault(name, ir.ValueMatch(name=name, value=value, regex=not exact))
    return tuple(values[name] for name in sorted(values))


def match_text(match: ir.Match) -> str:
    """Say in words what requests a match is for, without the values of its headers and parameters."""
    match match.kind:
        case "prefix":
            reported = f"{match.path} and paths below it" if match.path else "any path"
        case "exact":
            reported = match.path
        case _ if match.path in (_ANY_PATH, f"/{_ANY_PATH}"):
            reported = "any path"
        case _ if match.path == _META.sub(r"\\\g<0>", begin := literal_prefix(match.path)) + _BELOW:
            reported = f"{begin} and paths below it"
        case _:
            reported = f'paths of "{match.path}"'
    method = f"{match.method} " if match.method else ""
    named = [one.name if ":" in one.name else f"header {one.name}" for one in match.headers]
    named = [one.replace("cookie:", "cookie ", 1) for one in named]
    named += [f"query parameter {one.name}" for one in match.query]
    return f"{method}{reported}" + (f" with {', '.join(named)}" if named else "")


def _translate_path(match: HTTPPathMatch, wrong: Wrong, path: str) -> _Target:
    if match.type not in _PATH_TYPES:
        wrong.append((f"{path}.type", supported_text(match.type, _PATH_TYPES)))
        return "regex", f"/{_ANY_PATH}"
    where = f"{path}.value"
    if match.type == "RegularExpression":
        message = explain_regex(match.value)
        if not message:
            return "regex", match.value
        wrong.append((where, message))
        literal = literal_prefix(match.value)
        return "regex", _META.sub(r"\\\g<0>", literal) + _ANY_PATH
    message = check_path(match.value)
    if message:
        wrong.append((where, f'"{match.value}" {message}'))
        return "prefix", strip_slash(_sound_beginning(match.value))
    value = normalize_path(match.value)
    if match.type == "Exact":
        return "exact", value
    message = check_segments(value)
    if message:
        wrong.append((where, f'"{match.value}" {message}'))
        value = "/".join(value.split("/")[: MAX_SEGMENTS + 1])
    return "prefix", strip_slash(value)


def _sound_beginning(path: str) -> str:
    """Return as many whole segments of a path as are sound, "/" when none is, or when it leads somewhere else."""
    path = normalize_path(path if path.startswith("/") else f"/{path}")
    if not {".", ".."}.isdisjoint(path.split("/")):
        return "/"
    while len(path) > 1 and (check_path(path) or check_segments(path)):
        path = path[: path.rindex("/")] or "/"
    return path


def translate_values(
    matches: Sequence[HTTPHeaderMatch | HTTPQueryParamMatch],
    wrong: Wrong,
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
        if name in values:
            report.warn(
                f"{path}[{at}].name", "Duplicate", f'"{match.name}" is a duplicate and ignored'
            )
            continue
        values[name] = _translate_value(match, name, wrong, f"{path}[{at}]")
    return tuple(values[name] for name in sorted(values))


def _translate_value(
    match: HTTPHeaderMatch | HTTPQueryParamMatch, name: str, wrong: Wrong, path: str
) -> ir.ValueMatch:
    if match.type == "Exact":
        return ir.ValueMatch(name=name, value=match.value)
    if match.type not in _VALUE_TYPES:
        wrong.append((f"{path}.type", supported_text(match.type, _VALUE_TYPES)))
        return ir.ValueMatch(name=name, value=_ANY_VALUE, regex=True)
    message = explain_regex(match.value, match.name)
    if message:
        wrong.append((f"{path}.value", message))
    return ir.ValueMatch(name=name, value=_ANY_VALUE if message else match.value, regex=True)
