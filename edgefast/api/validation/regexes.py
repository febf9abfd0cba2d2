"""Regexes of a route: their number, and the rules that exceed the limit.

In: a route of any kind. Out: counts of the regular expressions of its matches (paths, headers, query parameters, calls).
A compilation takes up to some milliseconds, so a route has at most REGEXES_PER_ROUTE.
Must never: compile a pattern.
"""

from __future__ import annotations

from edgefast.api.gateway.grpcroute import GRPCRoute, GRPCRouteMatch, GRPCRouteRule
from edgefast.api.gateway.httproute import HTTPRoute, HTTPRouteMatch, HTTPRouteRule

__all__ = ["REGEXES_PER_ROUTE", "count_in_match", "count_regexes", "find_excess"]

#: Regular expressions that one route may have: twice the matches that it may have. With headers and query parameters the API allows 4,224.
REGEXES_PER_ROUTE = 256

_REGEX = "RegularExpression"


def count_in_match(match: HTTPRouteMatch | GRPCRouteMatch) -> int:
    """Return how many regular expressions a match has; the service and method of a call are one."""
    count = 0
    for header in match.headers:
        count += header.type == _REGEX
    if isinstance(match, HTTPRouteMatch):
        count += match.path.type == _REGEX
        for parameter in match.query_params:
            count += parameter.type == _REGEX
        return count
    return count + (match.method is not None and match.method.type == _REGEX)


def count_regexes(route: object) -> int:
    """Return how many regular expressions the matches of an object have; 0 for kinds without matches."""
    if not isinstance(route, HTTPRoute | GRPCRoute):
        return 0
    count = 0
    for rule in route.spec.rules:
        for match in rule.matches:
            count += count_in_match(match)
    return count


def find_excess(route: object) -> frozenset[int]:
    """Return the indexes of rules with refused regular expressions: the first rule that exceeds the limit, and all later rules with some."""
    if count_regexes(route) <= REGEXES_PER_ROUTE:
        return frozenset()
    assert isinstance(route, HTTPRoute | GRPCRoute)
    found, total = set(), 0
    rules: tuple[HTTPRouteRule | GRPCRouteRule, ...] = route.spec.rules
    for index, rule in enumerate(rules):
        count = sum(count_in_match(match) for match in rule.matches)
        total += count
        if count and total > REGEXES_PER_ROUTE:
            found.add(index)
    return frozenset(found)
