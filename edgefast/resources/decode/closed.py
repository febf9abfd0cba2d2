"""Closed routes: of an HTTPRoute with a mistake, the place that it was to have, so that it can be kept closed.

In: the plain value of a document, or of an API server's object, and what is wrong with it. Out: an HTTPRoute that serves nothing
(`closed`): parents, hostnames and matches as far as they can be read, names of fields and words that are all but right included.
What cannot be read of a match is left out of it, so that it takes more: of a path its beginning, or every path. Hostnames are not
made more: without one that can be read there is no place, for all other hosts of a listener are other people's.
Must never: bring anything into service, or raise for what a user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import msgspec

from edgefast.problem import ObjectRef, did_you_mean
from edgefast.resources.decode.walk import Walk
from edgefast.resources.gatewayapi.httproute import (
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPQueryParamMatch,
    HTTPRoute,
    HTTPRouteMatch,
    HTTPRouteRule,
    HTTPRouteSpec,
)
from edgefast.resources.limits import MAX_CLOSED_PARTS
from edgefast.resources.loaded import Path, render_path
from edgefast.resources.model.closed import Closed
from edgefast.resources.model.fields import Element, Hostname
from edgefast.resources.model.meta import ObjectMeta
from edgefast.resources.model.reference import ParentReference
from edgefast.resources.model.shape import shape_of
from edgefast.resources.model.timestamp import parse_timestamp
from edgefast.resources.rules.hostname import check_hostnames
from edgefast.resources.rules.httproute import check_literal
from edgefast.resources.rules.rule import Violation

__all__ = ["NAMELESS", "close_route"]

#: The name of a route whose own cannot be read.
NAMELESS = "?"
#: An expression for any value at all, line breaks included.
_ANY_VALUE = "(?s).*"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
#: Fields of a part of a route that are looked at; no part has as many.
_MAX_KEYS = 32
#: Where the beginning of a path of unknown type ends: here a pattern of some kind may begin.
_PATTERN = re.compile(r"[*?\[\](){}|^$+\\]")
#: A hostname with what people write around it: scheme, port, path, the dot of the root.
_HOSTNAME = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://)?([^/:\s]+?)\.?(?::\d*)?(?:/.*)?\s*", re.DOTALL)


def close_route(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Collection[Path] = ()
) -> HTTPRoute:
    """Return the closed route of an object; without `parent_refs` its place cannot be told.

    `first`: the first mistake; `repeated`: paths of fields that the document gives twice, of which one is lost.
    """
    spec = raw.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    parents = tuple(_read_parents(_named(spec, "parentRefs", HTTPRouteSpec)))
    hostnames, lost = _read_hostnames(_named(spec, "hostnames", HTTPRouteSpec))
    if not hostnames:  # they may be in a field that is not known, or in the one of two that is lost
        twice = {("spec",), ("spec", "hostnames")}.intersection(repeated)
        lost = lost or bool(twice) or _is_strange(spec, HTTPRouteSpec)
    rules: list[HTTPRouteRule] = []
    widened: set[tuple[int, int]] = set()
    for at, matches in enumerate(
        _read_rules(spec, {path for path in repeated if path[:1] == ("spec",)})
    ):
        rules.append(HTTPRouteRule(matches=tuple(match for match, _ in matches)))
        widened.update((at, place) for place, (_, wide) in enumerate(matches) if wide)
    return HTTPRoute(
        metadata=_read_meta(raw.get("metadata"), ref),
        spec=HTTPRouteSpec(
            parent_refs=() if lost else parents, hostnames=hostnames, rules=tuple(rules)
        ),
        closed=Closed(
            render_path(first.path),
            f"{first.reason} {first.message}",
            frozenset(widened),
        ),
    )


_Match = tuple[HTTPRouteMatch, bool]  # and whether it takes more than was written


def _read_meta(raw: object, ref: ObjectRef) -> ObjectMeta:
    known = raw if isinstance(raw, dict) else {}
    uid, generation, created = (
        known.get(one) for one in ("uid", "generation", "creationTimestamp")
    )
    aged = isinstance(created, str) and parse_timestamp(created) is not None
    return ObjectMeta(
        name=ref.name if _NAME.fullmatch(ref.name) else NAMELESS,
        namespace=ref.namespace,
        uid=uid if isinstance(uid, str) else "",
        generation=generation if isinstance(generation, int) else 0,
        creation_timestamp=created if isinstance(created, str) and aged else "",
    )


# --- where ---------------------------------------------------------------------------------------


def _read_parents(raw: object) -> Iterator[ParentReference]:
    for one in _items(raw):
        named = {"name": one} if isinstance(one, str) else one
        if not isinstance(named, dict):
            continue
        fields = {name: _named(named, name, ParentReference) for name in _names(ParentReference)}
        found = _build(ParentReference, fields)
        # A listener that cannot be read may be any of its Gateway's.
        least = {
            name: value for name, value in fields.items() if name not in ("sectionName", "port")
        }
        found = found or _build(ParentReference, least)
        if found is None and not any(fields[name] for name in ("group", "kind", "namespace")):
            found = _build(ParentReference, {"name": fields["name"]})
        if found is not None:
            yield found


def _read_hostnames(raw: object) -> tuple[tuple[str, ...], bool]:
    """Return the hostnames, and whether there are some of which none can be read."""
    found: dict[str, None] = {}
    items = list(_items(raw))
    for one in items:
        inner = _HOSTNAME.fullmatch(one.lower()) if isinstance(one, str) else None
        if inner is None:
            continue
        try:
            host = msgspec.convert(inner[1], Hostname)
        except msgspec.ValidationError:
            continue
        if not list(check_hostnames(HTTPRouteSpec(hostnames=(host,)))):
            found[host] = None
    return tuple(found), bool(items) and not found


# --- what ----------------------------------------------------------------------------------------


def _read_rules(spec: dict[str, Any], repeated: Collection[Path]) -> Iterator[list[_Match]]:
    """Give the matches of each rule, at least one of each."""
    raw, left = _named(spec, "rules", HTTPRouteSpec), MAX_CLOSED_PARTS
    rules = list(_items(raw))
    if not rules or ("spec",) in repeated or ("spec", "rules") in repeated:
        yield [(HTTPRouteMatch(), raw is not None or _is_strange(spec, HTTPRouteSpec))]
    for at, rule in enumerate(rules):
        if left <= 0:
            yield [(HTTPRouteMatch(), True)]
            return
        here = ("spec", "rules", at)
        found = list(_read_matches(rule, {path[3:] for path in repeated if path[:3] == here}, left))
        left -= len(found)
        yield found


def _read_matches(rule: object, repeated: Collection[Path], most: int) -> Iterator[_Match]:
    if not isinstance(rule, dict):
        yield HTTPRouteMatch(), True
        return
    raw = _named(rule, "matches", HTTPRouteRule)
    matches = list(_items(raw))
    lost = any(path in ((), ("matches",)) for path in repeated) or len(matches) > most
    if not matches or lost:
        yield HTTPRouteMatch(), lost or raw is not None or _is_strange(rule, HTTPRouteRule)
    for at, match in enumerate(matches[:most]):
        if not isinstance(match, dict) or any(path[:2] == ("matches", at) for path in repeated):
            yield HTTPRouteMatch(), True
        else:
            yield _read_match(match)


def _read_match(raw: dict[str, Any]) -> _Match:
    path, wide = _read_path(raw)
    headers, wide_headers = _read_values(_named(raw, "headers", HTTPRouteMatch), HTTPHeaderMatch)
    query, wide_query = _read_values(
        _named(raw, "queryParams", HTTPRouteMatch), HTTPQueryParamMatch
    )
    method = _named(raw, "method", HTTPRouteMatch)
    known = _enum(HTTPRouteMatch, "method")
    named = method.upper() if isinstance(method, str) and method.upper() in known else None
    match = HTTPRouteMatch(path=path, headers=headers, query_params=query)
    if named is not None:
        match = msgspec.structs.replace(match, method=named)
    return match, wide or wide_headers or wide_query or (method is not None and named is None)


def _read_path(match: dict[str, Any]) -> tuple[HTTPPathMatch, bool]:
    raw = _named(match, "path", HTTPRouteMatch)
    if raw is None and "value" in match:
        raw = match  # its fields stand where it should
    if raw is None:
        return HTTPPathMatch(), _is_strange(match, HTTPRouteMatch)
    if isinstance(raw, str):
        raw = {"value": raw}
    if not isinstance(raw, dict):
        return HTTPPathMatch(), True
    value, kind = _named(raw, "value", HTTPPathMatch), _named(raw, "type", HTTPPathMatch)
    if value is None:
        return HTTPPathMatch(), len(raw) > (kind is not None)
    if not isinstance(value, str):
        return HTTPPathMatch(), True
    kinds = _enum(HTTPPathMatch, "type")
    meant = "PathPrefix" if kind is None else _word(kind, kinds)
    if meant is None and isinstance(kind, str) and "reg" in kind.lower():
        meant = "RegularExpression"
    if meant == "RegularExpression":
        return HTTPPathMatch(type="RegularExpression", value=value), meant != kind
    text = value if value.startswith("/") else f"/{value.lstrip()}"
    if meant is None and (pattern := _PATTERN.search(text)):
        text = text[: text.rindex("/", 0, pattern.start()) + 1]
    sound = _sound_beginning(text)
    if meant == "Exact" and sound == value:
        return HTTPPathMatch(type="Exact", value=value), meant != kind
    return HTTPPathMatch(value=sound), sound != value or meant != (kind or "PathPrefix")


def _sound_beginning(path: str) -> str:
    """Return as many whole segments of a path as are sound, "/" when none is."""
    while len(path) > 1 and (len(path) > _MAX_PATH or check_literal(path)):
        path = path[: path.rindex("/", 0, min(len(path) - 1, _MAX_PATH))] or "/"
    return path


#: HTTPPathMatch takes no more characters.
_MAX_PATH = 1024


def _read_values(raw: object, struct: type[Any]) -> tuple[tuple[Any, ...], bool]:
    """Return the conditions on headers or parameters, and whether a part of them is left out."""
    found = []
    items = list(_items(raw))
    wide = False
    for one in items:
        fields = (
            {name: _named(one, name, struct) for name in _names(struct)}
            if isinstance(one, dict)
            else {}
        )
        built = _build(struct, one)
        if built is None:
            wide = True
            any_value = {"name": fields.get("name"), "type": "RegularExpression", "value": "x"}
            built = _build(struct, any_value)
            built = built and msgspec.structs.replace(built, value=_ANY_VALUE)
        if built is not None:
            found.append(built)
    return tuple(found), wide


# --- fields and words ------------------------------------------------------------------------------


def _items(raw: object) -> Iterator[Any]:
    """Give the entries of a list, one more than is read at most; what stands where a list should is its only entry."""
    if isinstance(raw, list | tuple):
        return islice(raw, MAX_CLOSED_PARTS + 1)
    return iter(() if raw is None else (raw,))


def _names(struct: type[Element]) -> list[str]:
    return [one.name for one in shape_of(struct).fields]


def _meant(name: str, struct: type[Element]) -> str | None:
    """Return the field that a name is, or all but is."""
    return _word(name, _names(struct))


def _named(raw: dict[str, Any], name: str, struct: type[Element]) -> Any:
    """Return a field; when there is none of that name, the one whose name was perhaps meant to be it."""
    if raw.get(name) is not None:
        return raw[name]
    known = _names(struct)
    near = (
        key for key in islice(raw, _MAX_KEYS) if key not in known and _meant(key, struct) == name
    )
    return raw.get(next(near, name))


def _is_strange(raw: dict[str, Any], struct: type[Element]) -> bool:
    """Tell whether there is a field that may mean anything."""
    return len(raw) > _MAX_KEYS or any(_meant(key, struct) is None for key in raw)


def _enum(struct: type[Element], name: str) -> tuple[Any, ...]:
    found = shape_of(struct).field(name)
    assert found is not None
    return found.shape.enum


def _word(text: object, words: Collection[str]) -> str | None:
    """Return the word that a text is, or all but is."""
    if not isinstance(text, str) or text in words:
        return text if isinstance(text, str) else None
    said = did_you_mean(text, words)
    return next((word for word in words if said == f"did you mean {word}?"), None)


def _build(struct: type[Any], raw: object) -> Any:
    """Return the Struct of sound fields, None when one of them is not."""
    return Walk(redact=True).build(struct, raw)
