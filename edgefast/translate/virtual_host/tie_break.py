"""Tie break: the order of matches with equal precedence.

In: the entries of one virtual host. Out: the same with their sort keys. The older route is first,
and of one route the earlier rule. A widened match, with a refused part, comes before its equals of
its own namespace at any age: its requests are closed. Among routes of other namespaces it has the
age of its own object, like any other match: a mistake takes nothing from them.
Must never: put a mistake before an older route of another namespace that is its equal.
"""

from __future__ import annotations

from typing import cast

import msgspec

from edgefast.translate.match.grpc_match import ANY_SERVICE, service_pattern
from edgefast.translate.match.precedence import Age, MatchOrder
from edgefast.translate.virtual_host.shadowed_match import HostEntry, Turn

__all__ = ["WIDENED", "break_ties", "tie_break_key"]


WIDENED = 0  # the last part of a MatchOrder


def tie_break_key(age: Age) -> Turn:
    """Return the turn of the matches of a route."""
    return (*age, 1, age)


def break_ties(entries: list[HostEntry]) -> list[HostEntry]:
    """Give matches that were widened their turn; all come with that of their age.

    Those that look at other paths or methods are not their equals.
    """
    groups: dict[object, list[HostEntry]] = {}
    for entry in entries:
        equal, match = entry[0][:-1], entry[4]
        # Two expressions may always have a request in common.
        path = match.path if match.kind != "regex" else ""
        groups.setdefault((equal, path, match.method), []).append(entry)
    settled: list[HostEntry] = []
    for group in groups.values():
        group.sort(key=lambda entry: entry[1:4])
        namespace = ""
        first: HostEntry | None = None  # sound one of those of a namespace that stand together
        for entry in group:
            (*same, widened), turn, index, at, match, rule, key = entry
            if key[0] != namespace:
                namespace, first = key[0], None
            if widened != WIDENED:
                first = first or entry
            elif first is not None:
                turn = (*first[1][:2], 0, turn[3])
            order = cast("MatchOrder", (*same, 1))
            settled.append((order, turn, index, at, match, rule, key))
    return settled


# --- calls in a virtual host ---


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
