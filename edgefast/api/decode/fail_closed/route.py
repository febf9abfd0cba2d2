"""Route: placeholders for routes with a mistake, which close their hostnames and matches.

In: the plain value of a document, or of an API server's object, and its mistakes. Out: a route that
serves nothing (`closed`). It has parents, hostnames and matches as far as they can be read,
including misspelt fields and values. Unreadable conditions of a match are left out, so that it
takes more: a prefix of the path, or every path. Hostnames are not widened: without a readable one
the route closes nothing, because all other hosts of a listener belong to others.
Must never: bring anything into service, or raise for what a user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from edgefast.api.decode.fail_closed.fuzzy import (
    build,
    field_of,
    is_strange,
    items_of,
    names_of,
    note_closed,
    read_hostnames,
    read_meta,
    read_spec,
    word_of,
    words_of,
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
from edgefast.api.limits import MAX_CLOSED_PARTS
from edgefast.api.loaded import Path
from edgefast.api.model.reference import ParentReference
from edgefast.api.validation.httproute import check_literal
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["Kind", "close_as", "close_route", "read_place", "read_values"]

#: An expression for any value at all, line breaks included.
_ANY_VALUE = "(?s).*"
#: Where the beginning of a path of unknown type ends: here a pattern of some kind may begin.
_PATTERN = re.compile(r"[*?\[\](){}|^$+\\]")


class Kind(msgspec.Struct, frozen=True):
    """What a kind of route is made of, and how one of its matches is read: with whether it takes more than was written."""

    route: type[Any]
    spec: type[Any]
    rule: type[Any]
    match: type[Any]
    read_match: Callable[[dict[str, Any]], tuple[Any, bool]]


def close_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> HTTPRoute:
    """Return the closed route of an object; without `parent_refs` its place cannot be told.

    `first`: the first mistake; `repeated`: paths of fields that the document gives twice, of which one is lost.
    """
    made: HTTPRoute = close_as(_HTTP, raw, ref, first, repeated)
    return made


def close_as(
    kind: Kind, raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path]
) -> Any:
    """Do what close_route does, for a kind of route."""
    spec = read_spec(raw)
    parents, hostnames = read_place(spec, kind.spec, repeated)
    rules: list[Any] = []
    widened: set[tuple[int, int]] = set()
    for at, matches in enumerate(
        _read_rules(kind, spec, {path for path in repeated if path[:1] == ("spec",)})
    ):
        rules.append(kind.rule(matches=tuple(match for match, _ in matches)))
        widened.update((at, place) for place, (_, wide) in enumerate(matches) if wide)
    return kind.route(
        metadata=read_meta(raw.get("metadata"), ref),
        spec=kind.spec(parent_refs=parents, hostnames=hostnames, rules=tuple(rules)),
        closed=note_closed(first, widened=widened),
    )


_Match = tuple[Any, bool]  # and whether it takes more than was written


# --- where ---------------------------------------------------------------------------------------


def read_place(
    spec: dict[str, Any], struct: type[Any], repeated: Collection[Path]
) -> tuple[tuple[ParentReference, ...], tuple[str, ...]]:
    """Return parents and hostnames; no parent where a hostname may be one that cannot be read."""
    parents = tuple(_read_parents(field_of(spec, "parentRefs", struct)))
    if "hostnames" not in names_of(struct):
        return parents, ()
    hostnames, lost = read_hostnames(field_of(spec, "hostnames", struct))
    if not hostnames:  # they may be in a field that is not known, or in the one of two that is lost
        twice = {("spec",), ("spec", "hostnames")}.intersection(repeated)
        lost = lost or bool(twice) or is_strange(spec, struct)
    return () if lost else parents, hostnames


def _read_parents(raw: object) -> Iterator[ParentReference]:
    """Give the parents that can be read."""
    for one in items_of(raw):
        named = {"name": one} if isinstance(one, str) else one
        if not isinstance(named, dict):
            continue
        fields = {
            name: field_of(named, name, ParentReference) for name in names_of(ParentReference)
        }
        found = build(ParentReference, fields)
        # A listener that cannot be read may be any of its Gateway's.
        least = {
            name: value for name, value in fields.items() if name not in ("sectionName", "port")
        }
        found = found or build(ParentReference, least)
        if found is None and not any(fields[name] for name in ("group", "kind", "namespace")):
            found = build(ParentReference, {"name": fields["name"]})
        if found is not None:
            yield found


# --- what ----------------------------------------------------------------------------------------


def _read_rules(
    kind: Kind, spec: dict[str, Any], repeated: Collection[Path]
) -> Iterator[list[_Match]]:
    """Give the matches of each rule, at least one of each."""
    raw, left = field_of(spec, "rules", kind.spec), MAX_CLOSED_PARTS
    rules = list(items_of(raw))
    if not rules or ("spec",) in repeated or ("spec", "rules") in repeated:
        yield [(kind.match(), raw is not None or is_strange(spec, kind.spec))]
    for at, rule in enumerate(rules):
        if left <= 0:
            yield [(kind.match(), True)]
            return
        here = ("spec", "rules", at)
        found = list(
            _read_matches(kind, rule, {path[3:] for path in repeated if path[:3] == here}, left)
        )
        left -= len(found)
        yield found


def _read_matches(
    kind: Kind, rule: object, repeated: Collection[Path], most: int
) -> Iterator[_Match]:
    if not isinstance(rule, dict):
        yield kind.match(), True
        return
    raw = field_of(rule, "matches", kind.rule)
    matches = list(items_of(raw))
    lost = any(path in ((), ("matches",)) for path in repeated) or len(matches) > most
    if not matches or lost:
        yield kind.match(), lost or raw is not None or is_strange(rule, kind.rule)
    for at, match in enumerate(matches[:most]):
        if not isinstance(match, dict) or any(path[:2] == ("matches", at) for path in repeated):
            yield kind.match(), True
        else:
            yield kind.read_match(match)


def _read_match(raw: dict[str, Any]) -> _Match:
    path, wide = _read_path(raw)
    headers, wide_headers = read_values(field_of(raw, "headers", HTTPRouteMatch), HTTPHeaderMatch)
    query, wide_query = read_values(
        field_of(raw, "queryParams", HTTPRouteMatch), HTTPQueryParamMatch
    )
    method = field_of(raw, "method", HTTPRouteMatch)
    known = words_of(HTTPRouteMatch, "method")
    named = method.upper() if isinstance(method, str) and method.upper() in known else None
    match = HTTPRouteMatch(path=path, headers=headers, query_params=query)
    if named is not None:
        match = msgspec.structs.replace(match, method=named)
    return match, wide or wide_headers or wide_query or (method is not None and named is None)


def _read_path(match: dict[str, Any]) -> tuple[HTTPPathMatch, bool]:
    raw = field_of(match, "path", HTTPRouteMatch)
    if raw is None and "value" in match:
        raw = match  # its fields stand where it should
    if raw is None:
        return HTTPPathMatch(), is_strange(match, HTTPRouteMatch)
    if isinstance(raw, str):
        raw = {"value": raw}
    if not isinstance(raw, dict):
        return HTTPPathMatch(), True
    value, kind = field_of(raw, "value", HTTPPathMatch), field_of(raw, "type", HTTPPathMatch)
    if value is None:
        return HTTPPathMatch(), len(raw) > (kind is not None)
    if not isinstance(value, str):
        return HTTPPathMatch(), True
    kinds = words_of(HTTPPathMatch, "type")
    guess = "PathPrefix" if kind is None else word_of(kind, kinds)
    if guess is None and isinstance(kind, str) and "reg" in kind.lower():
        guess = "RegularExpression"
    if guess == "RegularExpression":
        return HTTPPathMatch(type="RegularExpression", value=value), guess != kind
    text = value if value.startswith("/") else f"/{value.lstrip()}"
    if guess is None and (pattern := _PATTERN.search(text)):
        # It may have been an expression, and those come before all prefixes.
        below = re.escape(text[: text.rindex("/", 0, pattern.start())])
        value = f"{below}(/.*)?" if below else "/.*"
        return HTTPPathMatch(type="RegularExpression", value=value), True
    sound = _sound_beginning(text)
    if guess == "Exact" and sound == value:
        return HTTPPathMatch(type="Exact", value=value), guess != kind
    return HTTPPathMatch(value=sound), sound != value or guess != (kind or "PathPrefix")


def _sound_beginning(path: str) -> str:
    """Return as many whole segments of a path as are sound, "/" when none is."""
    while len(path) > 1 and (len(path) > _MAX_PATH or check_literal(path)):
        path = path[: path.rindex("/", 0, min(len(path) - 1, _MAX_PATH))] or "/"
    return path


#: HTTPPathMatch takes no more characters.
_MAX_PATH = 1024


def read_values(raw: object, struct: type[Any]) -> tuple[tuple[Any, ...], bool]:
    """Return the conditions on headers or parameters, and whether a part of them is left out."""
    found = []
    items = list(items_of(raw))
    wide = False
    for one in items:
        fields = (
            {name: field_of(one, name, struct) for name in names_of(struct)}
            if isinstance(one, dict)
            else {}
        )
        built = build(struct, one)
        if built is None:
            wide = True
            any_value = {"name": fields.get("name"), "type": "RegularExpression", "value": "x"}
            built = build(struct, any_value)
            built = built and msgspec.structs.replace(built, value=_ANY_VALUE)
        if built is not None:
            found.append(built)
    return tuple(found), wide


_HTTP = Kind(HTTPRoute, HTTPRouteSpec, HTTPRouteRule, HTTPRouteMatch, _read_match)
