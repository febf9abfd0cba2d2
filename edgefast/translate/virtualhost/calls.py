"""Calls in a virtual host: a service alone comes before a method alone, as precedence among GRPCRoutes has it.

In: the entries of one virtual host. Out: the same; where one of them is for a method of any service, an expression, those for all methods of a
service are expressions, too, since the data plane asks expressions before prefixes. Everywhere else they are found by hash.
Source: Gateway API GRPCRouteRule.matches (characters of the service, then of the method).
Must never: touch an entry of an HTTPRoute, or let a match take more or less than it did.
"""

from __future__ import annotations

import msgspec

from edgefast.translate.match.call import ANY_SERVICE, service_pattern
from edgefast.translate.virtualhost.shadow import HostEntry

_REGEX = 1  # the first part of a MatchOrder


def order_calls(entries: list[HostEntry]) -> list[HostEntry]:
    """Return the entries as the data plane is to have them, not in order yet."""
    if not entries or "/" not in entries[0][6][0]:  # the kinds are on no host together
        return entries
    if not any(one[4].kind == "regex" and one[4].path.startswith(ANY_SERVICE) for one in entries):
        return entries
    return [_as_pattern(one) if one[4].kind == "prefix" and one[4].path else one for one in entries]


def _as_pattern(entry: HostEntry) -> HostEntry:
    (_, *order), turn, index, at, match, rule, key = entry
    match = msgspec.structs.replace(match, kind="regex", path=service_pattern(match.path))
    return (_REGEX, *order), turn, index, at, match, rule, key  # type: ignore[return-value]
