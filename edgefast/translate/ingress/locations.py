"""Locations: the matches of one host in the order in which nginx tries them.

In: a Server. Out: `Place`s in order, and whether the host is a regex host. On a regex host every location is a prefix of the
path, case-insensitive, tried by descending length of its path, then reverse alphabetical. One Ingress with use-regex, or one
rewrite-target that differs from its path, makes a regex host. On other hosts Exact comes before Prefix, and the longer prefix
before the shorter one; a path that ends in "/" redirects requests without the slash.
Source: ingress-nginx location.go (`updateServerLocations`), template.go (`enforceRegexModifier`, `buildLocation`);
nginx ngx_http_core_module.c (`ngx_http_core_find_static_location`).
Must never: let requests of an expression that is not RE2 go to other locations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal
from urllib.parse import quote

import msgspec

from edgefast.api.gateway.httproute import HTTPPathMatch
from edgefast.api.model.regex import check_regex
from edgefast.translate.ingress.servers import Location, PathType, Server, Source
from edgefast.translate.match.literal import literal_prefix

#: Characters of a path that need no escape in the normal form of requests (csrc/path.h).
_PLAIN = "/-._~!$&'()*+,;=:@"
_META = re.compile(r"[\\.\[\]()*+?{}|^$]")
#: What PCRE has and RE2 lacks, by name.
_FEATURES = (
    ("(?=", "lookahead"),
    ("(?!", "negative lookahead"),
    ("(?<=", "lookbehind"),
    ("(?<!", "negative lookbehind"),
    ("(?>", "an atomic group"),
    ("(?|", "a branch reset group"),
    ("(?R", "recursion"),
    ("(?#", "a comment"),
)
_BACKREFERENCE = re.compile(r"(?<!\\)(?:\\\\)*\\([1-9]|k[<{'])")
_POSSESSIVE = re.compile(r"[*+?}]\+")


class Place(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One match of a host."""

    location: Location
    path: str  # as nginx has it, after the split of prefixes
    match: HTTPPathMatch
    #: "serve"; "slash": redirect to the path with a slash; "refused": the expression is not RE2.
    kind: Literal["serve", "slash", "refused"] = "serve"
    wrong: str = ""  # of "refused": why
    neighbour: Source | None = None  # its route gets the rule if the location has no Ingress


class _Part(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A location of nginx: a path and a type, after the split of prefixes."""

    location: Location
    path: str
    type: PathType


def target_of(location: Location) -> str:
    """Return the rewrite-target of a location."""
    if location.source is None or location.plain:
        return ""
    return location.source.annotations.rewrite


def needs_rewrite(location: Location, path: str) -> bool:
    """Tell whether the rewrite-target differs from the path of a location."""
    return target_of(location) not in ("", path)


def uses_regex(location: Location) -> bool:
    """Tell whether the Ingress of a location has use-regex."""
    return (
        location.source is not None and not location.plain and location.source.annotations.use_regex
    )


def arrange(server: Server, is_closed: Callable[[Location, str], bool]) -> tuple[bool, list[Place]]:
    """Return whether a host is a regex host, and its matches in order; `is_closed` tells it of a location and a path of it."""
    parts = list(_split(server))
    regex = any(needs_rewrite(one.location, one.path) or uses_regex(one.location) for one in parts)
    places = _arrange_regex(parts) if regex else _arrange_plain(parts, is_closed)
    return regex, places


def _split(server: Server) -> Iterator[_Part]:
    """Give each Prefix location as "/foo/" and "/foo"; those with a rewrite or an expression stay as they are."""
    exact = {one.path for one in server.locations if one.path_type == "Exact"}
    for one in server.locations:
        whole = _Part(location=one, path=one.path, type=one.path_type)
        if one.path == "/" or one.path_type == "Exact":
            yield whole
        elif needs_rewrite(one, one.path) or uses_regex(one):
            yield whole
        else:
            slash = one.path if one.path.endswith("/") else f"{one.path}/"
            yield _Part(location=one, path=slash, type="Prefix")
            if one.path not in exact:
                yield _Part(location=one, path=one.path, type="Exact")


# --- regex hosts ---


def _arrange_regex(parts: list[_Part]) -> list[Place]:
    places: dict[str, Place] = {}
    for part in parts:
        pattern = path_pattern(part.path)
        wrong = explain_path(part.path, pattern)
        if wrong:
            pattern = _META.sub(r"\\\g<0>", literal_prefix(part.path)) + "(?s:.*)"
            pattern = f"(?i:{pattern})"
        match = HTTPPathMatch(type="RegularExpression", value=pattern)
        place = Place(
            location=part.location,
            path=part.path,
            match=match,
            kind="refused" if wrong else "serve",
            wrong=wrong,
        )
        places.setdefault(pattern, place)
    return list(places.values())


def path_pattern(path: str) -> str:
    """Return the expression for whole paths that `~* "^path"` of nginx finds."""
    if "|" in path:  # an alternative after "|" may be anywhere in the path
        return f"(?s:.*?)(?i:^{path})(?s:.*)"
    return f"(?i:{path})(?s:.*)"


def explain_path(path: str, pattern: str) -> str:
    """Return why an expression is not served, "" when it is RE2."""
    for text, name in _FEATURES:
        if text in path:
            return f"{name} is a feature of PCRE; RE2 has none"
    if _BACKREFERENCE.search(path):
        return "a backreference is a feature of PCRE; RE2 has none"
    if _POSSESSIVE.search(path):
        return "a possessive quantifier is a feature of PCRE; RE2 has none"
    wrong = check_regex(pattern)
    if not wrong and len(pattern) > 1024:
        return "longer than 1024 characters"
    return f"not an RE2 expression: {wrong}" if wrong else ""


# --- other hosts ---


def _arrange_plain(parts: list[_Part], is_closed: Callable[[Location, str], bool]) -> list[Place]:
    places: list[Place] = []
    exact: set[str] = {one.path for one in parts if one.type == "Exact"}
    done: set[str] = set()  # paths with a decision about the missing slash
    for part in parts:
        path, location = part.path, part.location
        if part.type == "Exact":
            if path == location.path and location.path_type == "Prefix":
                continue  # the half of a prefix that PathPrefix takes as well
            places.append(_exact(location, path, path))
        else:
            places.append(_prefix(location, path))
        bare = path[:-1]
        if not path.endswith("/") or not bare or bare in exact or bare in done:
            continue
        done.add(bare)
        # nginx redirects if one of the locations is open, by the settings of the exact one; the next shorter prefix has the path
        # otherwise.
        same = [one.location for one in sorted(parts, key=_is_prefix) if one.path == path]
        if all(is_closed(one, path) for one in same):
            parent = _parent(bare, parts)
            found = _exact(parent.location, parent.path, bare)
            places.append(msgspec.structs.replace(found, neighbour=location.source))
        else:
            places.append(_exact(same[0], path, bare, slash=True))
    return places


def _is_prefix(part: _Part) -> bool:
    return part.type != "Exact"


def _exact(location: Location, path: str, value: str, *, slash: bool = False) -> Place:
    match = HTTPPathMatch(type="Exact", value=escape(value))
    return Place(location=location, path=path, match=match, kind="slash" if slash else "serve")


def _prefix(location: Location, path: str) -> Place:
    value = path if path == "/" else path.removesuffix("/")
    return Place(
        location=location, path=path, match=HTTPPathMatch(type="PathPrefix", value=escape(value))
    )


def _parent(path: str, parts: list[_Part]) -> _Part:
    """Return the longest prefix that takes a path; "/" always does."""
    found = [one for one in parts if one.type == "Prefix" and path.startswith(one.path)]
    return max(found, key=lambda one: len(one.path))


def escape(path: str) -> str:
    """Return a path, which nginx compares with decoded requests, in the normal form of requests."""
    return quote(path, safe=_PLAIN)
