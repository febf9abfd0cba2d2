"""Order: which rules no request reaches, and which hosts need an order that precedence does not give.

In: pieces. Out: the same without rules that never match, and marked where the order needs the annotation
`gateway.edge.io/rule-order`.
Source: the precedence of edgefast/translate/match/precedence.py: exact, expression, prefix; the longer path, a method, more
headers. Ages and names of routes decide only between equal matches, and applying files gives ages by chance.
Must never: remove a rule that a request can reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from edgefast.api.edge.httproutefilter import HTTPRouteFilter
from edgefast.api.gateway.httproute import HTTPHeaderMatch, HTTPRouteRule
from edgefast.api.snapshot import Key
from edgefast.convert.pieces import Piece, filter_names

__all__ = ["arrange"]

_KINDS = {"Exact": 0, "RegularExpression": 1, "PathPrefix": 2}
Filters = Mapping[Key, HTTPRouteFilter]


class _Entry(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A rule with its turn; rules of Ingresses have one match."""

    piece: Piece
    index: int
    rank: int
    type: str
    path: str
    method: str | None
    headers: frozenset[HTTPHeaderMatch]
    cookies: int

    @property
    def precedence(self) -> tuple[int, int, int, int]:
        """Return the order that the match itself gives; the smaller one comes first."""
        return (
            _KINDS[self.type],
            -len(self.path),
            0 if self.method else 1,
            -len(self.headers) - self.cookies,
        )

    @property
    def group(self) -> tuple[str, str]:
        """Return what rules must share for their order to matter."""
        return (self.type, "" if self.type == "RegularExpression" else self.path)


def arrange(pieces: Iterable[Piece], filters: Filters) -> list[Piece]:
    """Return the pieces without rules that no request reaches, marked where they need an order."""
    hosts: dict[tuple[object, ...], list[Piece]] = {}
    for piece in pieces:
        hosts.setdefault((piece.parents, piece.hostnames), []).append(piece)
    found = []
    for together in hosts.values():
        entries = sorted(_entries(together, filters), key=lambda one: one.rank)
        reached = [one for at, one in enumerate(entries) if not _is_shadowed(one, entries[:at])]
        _keep(together, reached)
        ordered = _needs_order(reached)
        for piece in together:
            piece.ordered = ordered
            if piece.rules:
                found.append(piece)
    return found


def _entries(pieces: Iterable[Piece], filters: Filters) -> Iterable[_Entry]:
    for piece in pieces:
        for index, (rule, origin) in enumerate(piece.rules):
            (match,) = rule.matches
            yield _Entry(
                piece=piece,
                index=index,
                rank=origin.rank,
                type=match.path.type,
                path=match.path.value,
                method=match.method,
                headers=frozenset(match.headers),
                cookies=_count_cookies(rule, piece.namespace, filters),
            )


def _count_cookies(rule: HTTPRouteRule, namespace: str, filters: Filters) -> int:
    found = (filters[namespace, name].spec.matches for name in filter_names(rule))
    return sum(len(match.cookies) for one in found for match in one)


def _is_shadowed(entry: _Entry, earlier: Iterable[_Entry]) -> bool:
    """Tell whether an earlier rule of the same path takes every request that the rule matches."""
    return any(
        (one.type, one.path) == (entry.type, entry.path)
        and not one.cookies
        and one.method in (None, entry.method)
        and one.headers <= entry.headers
        for one in earlier
    )


def _keep(pieces: Iterable[Piece], entries: Iterable[_Entry]) -> None:
    kept = {(id(one.piece), one.index) for one in entries}
    for piece in pieces:
        piece.rules = [one for index, one in enumerate(piece.rules) if (id(piece), index) in kept]


def _needs_order(entries: Iterable[_Entry]) -> bool:
    """Tell whether precedence tries the rules of one path, or the expressions, in another order."""
    last: dict[tuple[str, str], _Entry] = {}
    for entry in entries:
        before = last.get(entry.group)
        if before is not None:
            if before.precedence > entry.precedence:
                return True
            apart = before.piece is not entry.piece or before.index > entry.index
            if before.precedence == entry.precedence and apart:
                return True
        last[entry.group] = entry
    return False
