"""Grouping: joins the routes of one Ingress that have the same rules.

In: pieces and the listeners of the Gateways. Out: fewer pieces, each with all hosts and listeners that its rules serve.
Must never: attach a host to a listener that did not serve it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgefast.api.model.origin import RuleOrigin
from edgefast.api.model.reference import ParentReference
from edgefast.convert.pieces import Piece

__all__ = ["join_pieces"]

#: Bounds of the Gateway API.
_HOSTNAMES = 16
_PARENTS = 32

#: Hostname of a listener by Gateway and name; "": of all hosts.
Listeners = Mapping[tuple[str, str], str]


def join_pieces(pieces: Iterable[Piece], listeners: Listeners) -> list[Piece]:
    """Return the pieces, with those of equal rules as one where a route can express it."""
    groups: dict[tuple[object, ...], list[Piece]] = {}
    for piece in pieces:
        known = groups.setdefault(_content(piece), [])
        for other in known:
            if _can_join(other, piece, listeners):
                other.made += piece.made
                other.hostnames = tuple(dict.fromkeys((*other.hostnames, *piece.hostnames)))
                other.parents = tuple(dict.fromkeys((*other.parents, *piece.parents)))
                break
        else:
            known.append(piece)
    return [one for group in groups.values() for one in group]


def _content(piece: Piece) -> tuple[object, ...]:
    """Return what pieces of one route have in common."""
    return (
        piece.ingress,
        piece.policies,
        piece.is_encrypted,
        piece.ordered,
        tuple((rule, _form(origin, ordered=piece.ordered)) for rule, origin in piece.rules),
    )


def _form(origin: RuleOrigin, *, ordered: bool) -> tuple[object, ...]:
    turn = origin.rank if ordered else 0
    return (turn, origin.http2, origin.trim_slash, origin.write_port, origin.drop_query)


def _can_join(one: Piece, other: Piece, listeners: Listeners) -> bool:
    if not one.hostnames or not other.hostnames:
        return one.hostnames == other.hostnames and one.parents == other.parents
    if len({*one.hostnames, *other.hostnames}) > _HOSTNAMES:
        return False
    if len({*one.parents, *other.parents}) > _PARENTS:
        return False
    return not _adds_host(one, other, listeners) and not _adds_host(other, one, listeners)


def _adds_host(one: Piece, other: Piece, listeners: Listeners) -> bool:
    """Tell whether a listener of one piece would serve a host of the other piece."""
    added = [parent for parent in one.parents if parent not in other.parents]
    return any(
        _attaches(_hostname_of(parent, listeners), host)
        for parent in added
        for host in other.hostnames
    )


def _hostname_of(parent: ParentReference, listeners: Listeners) -> str:
    return listeners[parent.name, parent.section_name or ""]


def _attaches(listener: str, host: str) -> bool:
    """Tell whether a listener and a hostname of a route have a name in common."""
    if listener in ("", host):
        return True
    if listener.startswith("*."):
        return host.endswith(listener[1:]) or (
            host.startswith("*.") and listener.endswith(host[1:])
        )
    return host.startswith("*.") and listener.endswith(host[1:])
