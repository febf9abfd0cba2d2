"""Precedence: which of two matches takes a request that satisfies both.

In: an `ir.Match` and the age and name of its route. Out: sort keys; smaller wins.
Exact before regex before prefix, then the longer path, a method, more headers, more query
parameters, the older route, namespace/name, the order of rules, the order of matches.
Source: Gateway API HTTPRouteRule.matches; regexes, which it leaves open, stand between.
Must never: look at hostnames; a virtual host holds one hostname only.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.resources.meta import ObjectMeta

_KINDS = {"exact": 0, "regex": 1, "prefix": 2}
#: Sorts after every timestamp: objects from files have none and count as the youngest.
_NO_AGE = "~"

MatchOrder = tuple[int, int, int, int, int]
Age = tuple[str, str]


def match_order(match: ir.Match) -> MatchOrder:
    """Return the part of the order that the match itself decides."""
    return (
        _KINDS[match.kind],
        -len(match.path),
        0 if match.method else 1,
        -len(match.headers),
        -len(match.query),
    )


def age_order(meta: ObjectMeta) -> Age:
    """Return the order of objects: oldest first, then by namespace/name.

    Timestamps are RFC 3339 in UTC, as API servers write them, so that text order is time order.
    """
    return (meta.creation_timestamp or _NO_AGE, f"{meta.namespace}/{meta.name}")
