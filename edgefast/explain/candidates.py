"""Candidates: rules that were near to a request, and the one reason why each lost.

In: the served table, the listener that owns the request, the request, the matcher's hits.
Out: `Candidate`s, the nearest first: matching rules that come later, and rules of the same hosts
that nearly match. Then rules on other listeners and hosts that would match, and routes that are not
accepted or have mistakes. Every matching rule is listed, and every failing one has the failed
condition.
Must never: decide which rule wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice

from edgefast import ir
from edgefast.explain.explanation import Candidate
from edgefast.explain.match_failure import describe_match, try_match
from edgefast.explain.rejected_routes import find_refused, find_unaccepted
from edgefast.explain.served_fleet import Served
from edgefast.explain.source_location import Origin
from edgefast.table import Hit, Request
from edgefast.table.match import Call, order_hostnames
from edgefast.translate.match.literal import literal_prefix

_HOSTS = 20  # other hosts that are looked at
_LISTENERS = 20
_NEAR = 0.95  # how far a path may be that is told beside a winner: they have a letter in common
_THOROUGH = 500  # entries of a host up to which paths are compared letter by letter
_ALIKE = 0.6  # which part of a hostname must agree

#: virtual_host/tie_break.py
_REFUSED = (
    "a part of its match is refused, so it takes precedence over equal matches of the namespace"
)

#: A candidate that is written only if it is among the nearest: virtual host, match, rule, code, reason.
_Draft = tuple[str, ir.Match, ir.Rule, str, str]
#: Distance (smaller is nearer) and candidate.
_Ranked = tuple[tuple[float, ...], _Draft | Candidate]


def find_candidates(
    served: Served,
    listener: ir.Listener,
    host: str,
    request: Request,
    hits: Sequence[Hit],
    most: int,
) -> tuple[tuple[Candidate, ...], int]:
    """Return the `most` nearest candidates beside the winner (the first hit), and how many more there are."""
    call = Call(request)
    found: list[_Ranked] = []
    if hits:
        found += _rank_hits(served.origin, hits)
    found += _rank_failures(served, listener, host, call, request, hits)
    found += [((2.5, 0.0), one) for one in find_unaccepted(served.origin, host, call)]
    found += [((3.45, 0.0), one) for one in find_refused(served.origin)]
    found += _rank_listeners(served, listener, host, request)
    found += _rank_hosts(served, listener, host, request)
    found.sort(key=lambda one: one[0])
    once: dict[object, _Draft | Candidate] = {}
    for _, one in found:
        once.setdefault(_identity(one), one)
    kept = [
        one if isinstance(one, Candidate) else _write(served.origin, one)
        for one in islice(once.values(), most)
    ]
    return tuple(kept), len(once) - len(kept)


def _identity(one: _Draft | Candidate) -> object:
    if isinstance(one, Candidate):
        return one.route
    virtual_host, match, rule, _, reason = one
    return rule.route, rule.index, virtual_host, match, reason


def _write(origin: Origin, draft: _Draft) -> Candidate:
    virtual_host, match, rule, code, reason = draft
    return Candidate(
        route=rule.route,
        rule=rule.index,
        name=rule.name,
        reason=reason,
        code=code,
        virtual_host=virtual_host.rpartition("/")[2],
        match=describe_match(match),
        place=origin.match(rule, match),
    )


def _rank_hits(origin: Origin, hits: Sequence[Hit]) -> Iterator[_Ranked]:
    winner = hits[0]
    for at, hit in enumerate(hits[1:]):
        rule = winner.rule
        message = f"{rule.route} rule {rule.name or rule.index} takes precedence: {_why_later(origin, winner, hit)}"
        yield (0.0, float(at)), (hit.virtual_host, hit.match, hit.rule, "shadowed", message)


def _why_later(origin: Origin, winner: Hit, loser: Hit) -> str:
    """Return the first point at which the order of precedence tells two matches apart."""
    first, other = winner.match, loser.match
    if winner.virtual_host != loser.virtual_host:
        name = winner.virtual_host.rpartition("/")[2]
        return f"hostname {name} is more specific than {loser.virtual_host.rpartition('/')[2]}"
    if first.kind != other.kind:
        return f"{first.kind} path before {other.kind}"
    if len(first.path) != len(other.path):
        return f"longer {'expression' if first.kind == 'regex' else 'prefix'}"
    if bool(first.method) != bool(other.method):
        return "it names a method"
    if len(first.headers) != len(other.headers):
        return "more headers"
    if len(first.query) != len(other.query):
        return "more query parameters"
    if winner.rule.route == loser.rule.route:
        if winner.rule.index > loser.rule.index:
            return _REFUSED
        same = winner.rule.index == loser.rule.index
        return "earlier match" if same else "earlier rule"
    ages = origin.age(winner.rule.route), origin.age(loser.rule.route)
    if ages[0] is None or ages[1] is None:
        return "older route, or first by name"
    if ages[0] > ages[1]:
        return _REFUSED
    return "older route" if ages[0][0] != ages[1][0] else "first by name, of the same age"


def _rank_failures(
    served: Served,
    listener: ir.Listener,
    host: str,
    call: Call,
    request: Request,
    hits: Sequence[Hit],
) -> Iterator[_Ranked]:
    """Give the entries of the hosts that were tried and do not match."""
    taken = {(hit.virtual_host, hit.match, hit.rule) for hit in hits}
    hosts = served.hosts.get(listener.name, {})
    for distance, hostname in enumerate(order_hostnames(host)):
        if hostname not in hosts:
            continue
        virtual_host, name = hosts[hostname], f"{listener.name}/{hostname}"
        few = not hits and len(virtual_host.entries) <= _THOROUGH
        for entry in virtual_host.entries:
            failure = try_match(entry.match, call, request.method)
            rule = virtual_host.rules[entry.rule]
            if failure is None:
                if (name, entry.match, rule) in taken:
                    continue
                # The table has left the match out (Shards.problems): nothing else keeps it from matching.
                yield (1.0, 0.0), (name, entry.match, rule, "not_served", "not in the table")
                continue
            if failure.test == "path":
                apart = _path_distance(entry.match, request.path, thorough=few)
                if apart > _NEAR and hits:
                    continue
                rank = (3.0 + apart, float(distance))
            else:
                rank = (2.0, failure.more + distance / 100)
            yield rank, (name, entry.match, rule, failure.test, failure.text)


def _path_distance(match: ir.Match, path: str, *, thorough: bool) -> float:
    """Return 0 for paths that are almost the same, 1 for those that have nothing in common.

    That is how far they begin alike; `thorough`: or, for half as much, what they have in common elsewhere.
    """
    want = (literal_prefix(match.path) if match.kind == "regex" else match.path) or "/"
    common = 0
    for one, other in zip(want, path, strict=False):
        if one != other:
            break
        common += 1
    near = max(0, common - 1) / max(len(match.path), 2)
    if thorough:
        near = max(near, SequenceMatcher(None, want, path).quick_ratio() / 2)
    return 1.0 - near


def _rank_listeners(
    served: Served, listener: ir.Listener, host: str, request: Request
) -> Iterator[_Ranked]:
    """Give what would win on other listeners, of this port or of others."""
    others = [one for one in served.fleet.listeners if one.name != listener.name]
    for other in others[:_LISTENERS]:
        hit = served.matcher.match(other.name, host, request)
        if hit is None:
            continue
        if other.port != listener.port:
            message = f"listener {other.name} has port {other.port}"
        elif other.hostname == listener.hostname:
            message = f"listener {listener.name} is older than {other.name}"
        else:
            message = f"listener {listener.name} ({listener.hostname}) has the host, not {other.name} ({other.hostname})"
        rank = 3.3 if other.port == listener.port else 6.0
        yield (rank, 0.0), (hit.virtual_host, hit.match, hit.rule, "listener", message)


def _rank_hosts(
    served: Served, listener: ir.Listener, host: str, request: Request
) -> Iterator[_Ranked]:
    """Give what would win on other hostnames of the listener that are alike."""
    tried = {*order_hostnames(host)}
    names = [name for name in served.hosts.get(listener.name, {}) if name not in tried]
    near = sorted((_host_distance(host, name), name) for name in names)[:_HOSTS]
    for distance, name in near:
        other = name.removeprefix("*.")
        hit = served.matcher.match_host(listener.name, name, request)
        if hit is None:
            continue
        wild = name.startswith("*.")
        if wild and host == other:
            message = f"hostname {host} is not under {name}: a wildcard matches at least one label"
        else:
            message = f"hostname {host} is not {'under ' if wild else ''}{name}"
        rank = 3.4 if distance <= 1 - _ALIKE else 7.0
        yield (rank, distance), (hit.virtual_host, hit.match, hit.rule, "hostname", message)


def _host_distance(host: str, name: str) -> float:
    """Return 0 for equal names, 1 for names without a letter in common."""
    plain = name.removeprefix("*.")
    if plain == host:
        return 0.0
    if host.partition(".")[2] == plain.partition(".")[2]:  # another name of the same domain
        return 0.3 * (1.0 - SequenceMatcher(None, host, plain).quick_ratio()) + 0.1
    matcher = SequenceMatcher(None, host, plain)
    return 1.0 - (matcher.ratio() if matcher.real_quick_ratio() > _ALIKE else 0.0)
