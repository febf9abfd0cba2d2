"""Route: placeholders for routes with an error, which close their hostnames and matches.

In: the plain value of a document, or of an API server's object, and its errors. Out: a route that
serves nothing (`closed`). It has the parents, hostnames and matches that are readable
(readable.py); a TLSRoute, TCPRoute or UDPRoute has no rules. An unreadable condition of a match is left out; an unreadable path takes every path
of the hostnames, before all prefixes. Hostnames are not widened: without a readable one the route
closes nothing, because all other hosts of a listener belong to other routes.
Must never: bring anything into service, or raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from edgefast.api.decode.fail_closed.readable import (
    build,
    field_of,
    is_repeated,
    is_strange,
    items_of,
    names_of,
    note_closed,
    read_hostnames,
    read_meta,
    read_spec,
)
from edgefast.api.gateway.grpcroute import (
    GRPCMethodMatch,
    GRPCRoute,
    GRPCRouteMatch,
    GRPCRouteRule,
    GRPCRouteSpec,
)
from edgefast.api.gateway.httproute import (
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPQueryParamMatch,
    HTTPRoute,
    HTTPRouteMatch,
    HTTPRouteRule,
    HTTPRouteSpec,
)
from edgefast.api.gateway.layer4_route import (
    StreamRoute,
    StreamRouteSpec,
    TCPRoute,
    TLSRoute,
    TLSRouteSpec,
    UDPRoute,
)
from edgefast.api.limits import MAX_CLOSED_PARTS
from edgefast.api.loaded import Path
from edgefast.api.model.reference import ParentReference
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["close_grpc_route", "close_route", "close_stream_route"]

#: An expression for any value at all, line breaks included.
_ANY_VALUE = "(?s).*"
#: Characters of a path, or of a part of a call.
_LONGEST = 1024
_ANY_PATH = HTTPPathMatch(type="RegularExpression", value="/.*")
_ANY_CALL = GRPCMethodMatch(type="RegularExpression")

#: A match, and whether it takes more than was written.
_Match = tuple[Any, bool]


class _Kind(msgspec.Struct, frozen=True):
    """The Structs of a kind of route, how to read one of its matches, and the match for every request."""

    route: type[Any]
    spec: type[Any]
    rule: type[Any]
    every: Any
    read_match: Callable[[dict[str, Any]], _Match]


def close_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> HTTPRoute:
    """Return the closed route of an object; without `parent_refs` its place is unknown.

    `first`: the first error; `repeated`: paths of fields that the document gives twice: the first of two is lost.
    """
    made: HTTPRoute = _close_as(_HTTP, raw, ref, first, repeated)
    return made


def close_grpc_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> GRPCRoute:
    """Return the closed GRPCRoute of an object, as close_route does; an unreadable method is every call."""
    made: GRPCRoute = _close_as(_GRPC, raw, ref, first, repeated)
    return made


def close_stream_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> StreamRoute:
    """Return the closed TLSRoute, TCPRoute or UDPRoute of an object; a TLSRoute without readable hostnames has no place."""
    meta, closed = read_meta(raw.get("metadata"), ref), note_closed(first)
    struct = TLSRouteSpec if ref.kind == TLSRoute.__name__ else StreamRouteSpec
    parents, hostnames = _read_place(read_spec(raw), struct, repeated)
    if ref.kind == TLSRoute.__name__:
        named = TLSRouteSpec(parent_refs=parents, hostnames=hostnames, rules=())
        return TLSRoute(metadata=meta, spec=named, closed=closed)
    made = TCPRoute if ref.kind == TCPRoute.__name__ else UDPRoute
    return made(metadata=meta, spec=StreamRouteSpec(parent_refs=parents, rules=()), closed=closed)


def _close_as(
    kind: _Kind, raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path]
) -> Any:
    """Do what close_route does, for a kind of route."""
    spec = read_spec(raw)
    parents, hostnames = _read_place(spec, kind.spec, repeated)
    rules: list[Any] = []
    widened: set[tuple[int, int]] = set()
    for at, matches in enumerate(_read_rules(kind, spec, repeated)):
        rules.append(kind.rule(matches=tuple(match for match, _ in matches)))
        widened.update((at, place) for place, (_, wide) in enumerate(matches) if wide)
    return kind.route(
        metadata=read_meta(raw.get("metadata"), ref),
        spec=kind.spec(parent_refs=parents, hostnames=hostnames, rules=tuple(rules)),
        closed=note_closed(first, widened=widened),
    )


def _read_place(
    spec: dict[str, Any], struct: type[Any], repeated: Collection[Path]
) -> tuple[tuple[ParentReference, ...], tuple[str, ...]]:
    """Return parents and hostnames; no parent where a hostname may be one that cannot be read."""
    parents = tuple(_read_parents(field_of(spec, "parentRefs", struct)))
    if "hostnames" not in names_of(struct):
        return parents, ()
    hostnames, lost = read_hostnames(field_of(spec, "hostnames", struct))
    if not hostnames:  # they may be in an unknown field, or in the first of two
        lost = lost or is_repeated(repeated, "hostnames") or is_strange(spec, struct)
    return () if lost else parents, hostnames


def _read_parents(raw: object) -> Iterator[ParentReference]:
    """Give the readable parents; one with an unreadable listener is its whole Gateway."""
    names = names_of(ParentReference)
    for one in items_of(raw):
        named = {"name": one} if isinstance(one, str) else one
        if not isinstance(named, dict):
            continue
        fields = {name: field_of(named, name, ParentReference) for name in names}
        least = {name: fields[name] for name in names if name not in ("sectionName", "port")}
        found = build(ParentReference, fields) or build(ParentReference, least)
        if found is None and not any(fields[name] for name in ("group", "kind", "namespace")):
            found = build(ParentReference, {"name": fields["name"]})
        if found is not None:
            yield found


def _read_rules(
    kind: _Kind, spec: dict[str, Any], repeated: Collection[Path]
) -> Iterator[list[_Match]]:
    """Give the matches of each rule, at least one of each."""
    raw, left = field_of(spec, "rules", kind.spec), MAX_CLOSED_PARTS
    rules = [None] if is_repeated(repeated, "rules") else list(items_of(raw))
    if not rules:
        yield [_whole(kind, raw, strange=is_strange(spec, kind.spec))]
    for at, rule in enumerate(rules):
        here: Path = ("spec", "rules", at)
        twice = any(path == here or path[:4] == (*here, "matches") for path in repeated)
        if twice or left <= 0 or not isinstance(rule, dict):
            found = [(kind.every, True)]
        else:
            found = list(_read_matches(kind, rule, left))
        yield found
        if left <= 0:
            return
        left -= len(found)


def _read_matches(kind: _Kind, rule: dict[str, Any], most: int) -> Iterator[_Match]:
    raw = field_of(rule, "matches", kind.rule)
    matches = list(items_of(raw))
    if not matches:
        yield _whole(kind, raw, strange=is_strange(rule, kind.rule))
    if len(matches) > most:
        yield kind.every, True
    for match in matches[:most]:
        yield kind.read_match(match) if isinstance(match, dict) else (kind.every, True)


def _whole(kind: _Kind, raw: object, *, strange: bool) -> _Match:
    """Return the match of a rule without any; `strange`: an unknown field may have had some."""
    return type(kind.every)(), raw is not None or strange


def _read_part(
    raw: dict[str, Any], name: str, match: type[Any], part: type[Any], every: Any
) -> _Match:
    """Return the path or method of a match: `every` for one that is unreadable, or perhaps in an unknown field; None without one."""
    given = field_of(raw, name, match)
    if given is None and not is_strange(raw, match):
        return None, False
    made = build(part, given)
    if made is not None:
        return made, False
    if isinstance(given, dict) and not is_strange(given, part):
        # It is read as an API server's object is: translation widens it to what it can mean.
        fields = {name: field_of(given, name, part) for name in names_of(part)}
        if all(len(one) <= _LONGEST for one in fields.values() if isinstance(one, str)):
            made = build(part, fields, lenient=True)
    return every if made is None else made, True


def _read_match(raw: dict[str, Any]) -> _Match:
    path, wide = _read_part(raw, "path", HTTPRouteMatch, HTTPPathMatch, _ANY_PATH)
    headers, wide_headers = _read_values(field_of(raw, "headers", HTTPRouteMatch), HTTPHeaderMatch)
    query, wide_query = _read_values(
        field_of(raw, "queryParams", HTTPRouteMatch), HTTPQueryParamMatch
    )
    made = HTTPRouteMatch(path=path or HTTPPathMatch(), headers=headers, query_params=query)
    wide = wide or wide_headers or wide_query
    method = field_of(raw, "method", HTTPRouteMatch)
    if method is None:
        return made, wide
    named = build(HTTPRouteMatch, {"method": method})
    if named is None:
        return made, True
    return msgspec.structs.replace(made, method=named.method), wide


def _read_call(raw: dict[str, Any]) -> _Match:
    headers, wide_headers = _read_values(field_of(raw, "headers", GRPCRouteMatch), HTTPHeaderMatch)
    method, wide = _read_part(raw, "method", GRPCRouteMatch, GRPCMethodMatch, _ANY_CALL)
    return GRPCRouteMatch(method=method, headers=headers), wide or wide_headers


def _read_values(raw: object, struct: type[Any]) -> tuple[tuple[Any, ...], bool]:
    """Return the conditions on headers or parameters, and whether a part of them is left out."""
    found = []
    wide = False
    for one in items_of(raw):
        built = build(struct, one)
        if built is None:
            wide = True
            name = field_of(one, "name", struct) if isinstance(one, dict) else None
            built = build(struct, {"name": name, "type": "RegularExpression", "value": "x"})
            built = built and msgspec.structs.replace(built, value=_ANY_VALUE)
        if built is not None:
            found.append(built)
    return tuple(found), wide


_HTTP = _Kind(HTTPRoute, HTTPRouteSpec, HTTPRouteRule, HTTPRouteMatch(path=_ANY_PATH), _read_match)
_GRPC = _Kind(GRPCRoute, GRPCRouteSpec, GRPCRouteRule, GRPCRouteMatch(method=_ANY_CALL), _read_call)
