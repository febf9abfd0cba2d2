"""Authorization examples: example requests on both sides of the authorization rules.

In: a match, the authorizations that apply to its rule before and after.
Out: `ExampleRequest`s: for each rule one that meets all of its conditions, and others that miss
one. Such are an address just outside, another method, an absent header. Rules that only one side
has come first, since the difference is there.
Must never: claim to be complete; a difference that no example shows is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from edgefast import ir
from edgefast.api.model.regex import compile_bytes_regex
from edgefast.explain.example_request import ExampleRequest, make_example_requests
from edgefast.explain.regex_sample import sample_pattern
from edgefast.netaddr import Network, parse_network

T = TypeVar("T")

_MOST = 60  # example requests for one match
_EACH = 6  # values of one condition
_OTHER = "other"
_METHODS = ("GET", "POST", "DELETE")


def make_authz_examples(
    match: ir.Match, sides: tuple[ir.Authorization | None, ...]
) -> Iterator[ExampleRequest]:
    """Yield example requests for a match; those first that only one side has a rule for."""
    plain, _ = make_example_requests([match])
    if plain:
        yield from islice(dict.fromkeys(_all(match, plain[0], sides)), _MOST)


def _all(
    match: ir.Match, plain: ExampleRequest, sides: tuple[ir.Authorization | None, ...]
) -> Iterator[ExampleRequest]:
    rules = [one.rules if one is not None else () for one in sides]
    shared = {rule for rule in rules[0] if all(rule in each for each in rules[1:])}
    every = list(dict.fromkeys(rule for each in rules for rule in each))
    for rule in sorted(every, key=lambda one: one in shared):
        others = [one for one in every if one != rule]
        yield from _around(match, plain, rule, others)


def _around(
    match: ir.Match, plain: ExampleRequest, rule: ir.AccessRule, others: list[ir.AccessRule]
) -> Iterator[ExampleRequest]:
    """Give one that meets all conditions, then those that differ from it in one."""
    base = _meet(match, plain, rule)
    if base is None:
        return
    yield base
    known = {one for each in others for one in each.sources}
    for network in _first(rule.sources, known):
        yield from (replace(base, source=one) for one in list_edges(parse_network(network)))
    for name, values in rule.headers:
        without = tuple(line for line in base.headers if line[0] != name)
        if all(one.name != name for one in match.headers):
            known = {
                one for each in others for of, more in each.headers if of == name for one in more
            }
            for value in (*_first(values, known), _OTHER):
                yield replace(base, headers=(*without, (name, value)))
            yield replace(base, headers=without)
    if not match.method:
        for method in dict.fromkeys((*rule.methods[:_EACH], *_METHODS)):
            yield replace(base, method=method)
    if rule.paths:
        yield replace(base, target=plain.target)
        for path in rule.paths[:_EACH]:
            target = _take(match, path)
            if target is not None:
                yield replace(base, target=target)
                if match.kind == "prefix":
                    yield replace(base, target=f"{target.rstrip('/')}/any")


def _meet(match: ir.Match, plain: ExampleRequest, rule: ir.AccessRule) -> ExampleRequest | None:
    """Return a request for the match that meets all conditions of a rule; None when there is none."""
    method = plain.method
    if rule.methods:
        if match.method and match.method not in rule.methods:
            return None
        method = match.method or rule.methods[0]
    target = plain.target
    if rule.paths:
        taken = (one for each in rule.paths if (one := _take(match, each)) is not None)
        target = next(taken, "")
        if not target:
            return None
    named = {name for name, _ in rule.headers} - {one.name for one in match.headers}
    lines = tuple((name, values[0]) for name, values in rule.headers if name in named)
    kept = tuple(line for line in plain.headers if line[0] not in named)
    source = str(parse_network(rule.sources[0])[0]) if rule.sources else ""
    return ExampleRequest(method, target, (*kept, *lines), source)


def _take(match: ir.Match, condition: tuple[ir.PathKind, str]) -> str | None:
    """Return a path that a condition holds for and the match takes."""
    kind, text = condition
    made = sample_pattern(text) if kind == "regex" else text or "/"
    if made is None:
        return None
    under = f"{match.path}/"
    if match.kind == "prefix":
        if made == match.path or made.startswith(under):
            return made
        inner = under if kind == "prefix" and under.startswith(f"{text.rstrip('/')}/") else None
        return inner.rstrip("/") or "/" if inner is not None else None
    if match.kind == "exact":
        return match.path if _holds(kind, text, match.path) else None
    compiled = compile_bytes_regex(match.path)
    return made if compiled.fullmatch(made.encode()) is not None else None


def _holds(kind: ir.PathKind, text: str, path: str) -> bool:
    if kind == "regex":
        return compile_bytes_regex(text).fullmatch(path.encode()) is not None
    return path == text or (kind == "prefix" and path.startswith(f"{text.rstrip('/')}/"))


def list_edges(network: Network) -> Iterator[str]:
    """Give the ends of a range, and the addresses beside them."""
    yield str(network[0])
    yield str(network[-1])
    for address, step in ((network[0], -1), (network[-1], 1)):
        try:
            yield str(address + step)
        except ValueError:  # there is none
            continue


def _first(values: Iterable[T], known: set[T]) -> list[T]:
    """Return some values, those first that no other rule has."""
    return sorted(values, key=lambda one: one in known)[:_EACH]


def replace(one: ExampleRequest, **fields: object) -> ExampleRequest:
    """Return it with other fields."""
    return msgspec.structs.replace(one, **fields)
