"""Example request: requests that a match accepts, and requests between matches.

In: the entries of one hostname, old and new. Out: `ExampleRequest`s without regard to which match
wins. For each match, the request that satisfies it and no more; for a prefix, one below it; for two
matches on one path, one that satisfies both. For a changed match, others until no earlier match
takes one.
Must never: claim to be complete; a difference that no example shows is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, product
from urllib.parse import quote

import msgspec

from edgefast import ir
from edgefast.api.model.regex import compile_regex
from edgefast.explain.regex_sample import sample_pattern
from edgefast.table.match import COOKIE

_PAIRS = 12  # matches on one path that are combined with each other
_BELOW = "any"  # a segment that no table has
_MOST = 120  # ways to write a request for one match
_METHODS = ("GET", "POST", "PUT", "OPTIONS", "HEAD", "DELETE", "PATCH")
_VALUES = ("any", "1", "a", "", "a b", "12", "any/any")

Lines = tuple[tuple[str, str], ...]


class ExampleRequest(msgspec.Struct, frozen=True):
    """A request to some host: what makes an `Ask` of it is the port."""

    method: str
    target: str
    headers: Lines
    source: str = ""  # the client's address; "": whoever asks


def make_example_requests(
    matches: Iterable[ir.Match],
) -> tuple[list[ExampleRequest], list[ir.Match]]:
    """Return example requests for matches, each once, and the matches without a possible request."""
    found: dict[ExampleRequest, None] = {}
    unmade: list[ir.Match] = []
    groups: dict[tuple[str, str], list[ir.Match]] = {}
    for match in dict.fromkeys(matches):
        made = list(_witness(match))
        found.update(dict.fromkeys(made))
        if not made:
            unmade.append(match)
        groups.setdefault((match.kind, match.path), []).append(match)
    for group in groups.values():
        if len(group) <= _PAIRS:
            for at, one in enumerate(group):
                for other in group[at + 1 :]:
                    both = _join(one, other)
                    found.update(dict.fromkeys(_witness(both) if both is not None else ()))
    return list(found), unmade


def vary_example_request(match: ir.Match) -> Iterator[ExampleRequest]:
    """Give requests that satisfy a match in ever other ways, the plainest first."""
    if match.kind == "prefix":
        below = ("", "/any", "/any/any", "/1", "/a.b")
        paths = [f"{match.path}{rest}" or "/" for rest in below]
    elif match.kind == "exact":
        paths = [match.path]
    else:
        paths = _paths(match)
        begin = paths[0] if paths else ""
        compiled = compile_regex(match.path)
        paths += [
            one for rest in _VALUES if compiled.fullmatch(one := f"{begin}{rest}") is not None
        ]
    methods = (match.method,) if match.method else _METHODS
    headers = [[(one.name, value) for value in _samples(one)] for one in match.headers]
    query = [[(one.name, value) for value in _samples(one)] for one in match.query]
    ways = product(product(*headers), product(*query), methods, dict.fromkeys(paths))
    for lines, requested, method, path in islice(ways, _MOST):
        yield _write(method, path, lines, requested)


def _samples(one: ir.ValueMatch) -> list[str]:
    if not one.regex:
        return [one.value]
    compiled = compile_regex(one.value)
    first = sample_pattern(one.value)
    others = [value for value in _VALUES if compiled.fullmatch(value) is not None]
    return list(dict.fromkeys([*([first] if first is not None else []), *others]))[:3]


def _witness(match: ir.Match) -> Iterator[ExampleRequest]:
    headers = _values(match.headers)
    query = _values(match.query)
    paths = _paths(match)
    if headers is None or query is None or not paths:
        return
    for path in paths:
        yield _write(match.method or "GET", path, headers, query)


def _write(
    method: str, path: str, headers: Iterable[tuple[str, str]], query: Iterable[tuple[str, str]]
) -> ExampleRequest:
    requested = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query)
    pairs = [(name, value) for name, value in headers if name != "host"]
    cookies = [
        f"{name.removeprefix(COOKIE)}={value}" for name, value in pairs if name.startswith(COOKIE)
    ]
    lines = tuple(one for one in pairs if not one[0].startswith(COOKIE))
    if cookies:
        lines += (("cookie", "; ".join(cookies)),)
    return ExampleRequest(method, f"{path}?{requested}" if requested else path, lines)


def _paths(match: ir.Match) -> list[str]:
    if match.kind == "exact":
        return [match.path]
    if match.kind == "prefix":
        return [match.path or "/", f"{match.path}/{_BELOW}"]
    made = sample_pattern(match.path)
    return [made] if made is not None and made.startswith("/") else []


def _values(predicates: tuple[ir.ValueMatch, ...]) -> list[tuple[str, str]] | None:
    values = []
    for one in predicates:
        value = sample_pattern(one.value) if one.regex else one.value
        if value is None:
            return None
        values.append((one.name, value))
    return values


def limit_match(match: ir.Match, limit: ir.RateLimit) -> ir.Match | None:
    """Return a match for requests that a rate limit counts too, as far as headers say so."""
    distinct = (ir.ValueMatch(name=name, value=_BELOW) for name in limit.distinct_headers)
    headers = _join_values(match.headers, (*limit.headers, *distinct))
    return msgspec.structs.replace(match, headers=headers) if headers is not None else None


def _join(one: ir.Match, other: ir.Match) -> ir.Match | None:
    """Return a match whose requests satisfy both; None when there are none, or a regex would have to be met twice."""
    if one.method and other.method and one.method != other.method:
        return None
    headers = _join_values(one.headers, other.headers)
    query = _join_values(one.query, other.query)
    if headers is None or query is None:
        return None
    method = one.method or other.method
    return ir.Match(kind=one.kind, path=one.path, method=method, headers=headers, query=query)


def _join_values(
    one: tuple[ir.ValueMatch, ...], other: tuple[ir.ValueMatch, ...]
) -> tuple[ir.ValueMatch, ...] | None:
    joined = {each.name: each for each in one}
    for each in other:
        known = joined.setdefault(each.name, each)
        if known != each:
            if known.regex == each.regex:
                return None
            joined[each.name] = (
                each if known.regex else known
            )  # the exact one; perhaps the regex takes it
    return tuple(joined.values())
