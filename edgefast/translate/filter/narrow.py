"""Narrow: combines the matches of a rule with the matches of its HTTPRouteFilters.

In: matches of a rule, and the alternatives of each filter. Out: each match once for each
combination of alternatives. Precedence counts cookies as headers.
Source: HTTPRouteFilter `matches`: a request satisfies one match of the rule and one of each filter.
Must never: make more matches than a rule may have; omit a condition for that.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from edgefast import ir
from edgefast.api.validation.httproute import MAX_MATCHES
from edgefast.translate.filter.route_filter import COOKIE, RouteFilter
from edgefast.translate.report.report import Report

__all__ = ["narrow_matches"]

Placed = tuple[int, ir.Match]  # the place in spec.rules[].matches


def narrow_matches(
    matches: Sequence[Placed], filters: Sequence[RouteFilter], report: Report, path: str
) -> list[Placed] | None:
    """Return the matches with the conditions of all filters, None when that is refused; `path`: of the rule's filters."""
    conditional = [one for one in filters if one.matches]
    if not conditional:
        return list(matches)
    count = len(matches)
    for one in conditional:
        count *= len(one.matches)
    if count > MAX_MATCHES:
        message = (
            f"{count} matches with those of HTTPRouteFilters, at most {MAX_MATCHES} for one rule"
        )
        report.refuse(path, "TooMany", message, condition="UnsupportedValue")
        return None
    ways: dict[tuple[ir.ValueMatch, ...], None] = {}
    for chosen in itertools.product(*(one.matches for one in conditional)):
        way = {one: None for part in chosen for one in part}
        names = [one.name for one in way]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            named = " and ".join(one.name for one in conditional)
            message = f'HTTPRouteFilters {named} require different values of cookie "{twice.removeprefix(COOKIE)}"'
            report.refuse(path, "IncompatibleFilters", message)
            return None
        ways[tuple(sorted(way, key=lambda one: one.name))] = None
    return [(at, _add(match, way)) for at, match in matches for way in ways]


def _add(match: ir.Match, way: tuple[ir.ValueMatch, ...]) -> ir.Match:
    headers = tuple(sorted((*match.headers, *way), key=lambda one: one.name))
    return msgspec.structs.replace(match, headers=headers)
