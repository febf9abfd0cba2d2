"""Precedence: which of two matches takes a request that satisfies both.

In: an `ir.Match` and the age and name of its route. Out: sort keys; smaller wins. The order is
exact, regex, prefix; then the longer path, a method, more headers, more query parameters. Then the
older route, namespace/name, the order of rules, the order of matches.
Source: Gateway API HTTPRouteRule.matches; it leaves regexes open: edgefast puts them between exact
and prefix.
Must never: look at hostnames; a virtual host holds one hostname only.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.decode.fail_closed.readable import NAMELESS
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.units import parse_timestamp

#: More than the matches of a host, and than the characters of a path.
_RANKED = 2**32
_KINDS = {"exact": 0, "regex": 1, "prefix": 2}
#: Sorts after every timestamp: objects from files have none and count as the youngest.
_NO_AGE = 2**63 - 1
#: What only keeps a place closed and has no name of its own is younger still.
_LAST = _NO_AGE + 1

MatchOrder = tuple[int, int, int, int, int, int]
Age = tuple[int, str]  # nanoseconds since 1970, namespace/name


def match_order(
    match: ir.Match,
    widened: int | None = None,
    characters: int | None = None,
    rank: int | None = None,
) -> MatchOrder:
    """Return the part of the order that the match itself decides.

    `widened`: it takes more than was written, and its path was that long. The last part says so; what it means for the turn
    among equals is in virtual_host/tie_break.py. `characters`: what counts in place of the path's length (match/grpc_match.py).
    `rank`:
    the turn of a match that serves an Ingress: among regexes of any length, else among equal paths; before all without a rank.
    """
    if rank is not None:
        length = _RANKED if match.kind == "regex" else len(match.path)
        return (_KINDS[match.kind], -length, rank - _RANKED, 0, 0, 1)
    return (
        _KINDS[match.kind],
        -(
            widened
            if widened is not None
            else len(match.path)
            if characters is None
            else characters
        ),
        0 if match.method else 1,
        -len(match.headers),
        -len(match.query),
        1 if widened is None else 0,
    )


def age_order(meta: ObjectMeta) -> Age:
    """Return the order of objects: oldest first, then by namespace/name."""
    if NAMELESS in meta.name:
        return (_LAST, f"{meta.namespace}/{meta.name}")
    created = parse_timestamp(meta.creation_timestamp) if meta.creation_timestamp else None
    return (_NO_AGE if created is None else created, f"{meta.namespace}/{meta.name}")
