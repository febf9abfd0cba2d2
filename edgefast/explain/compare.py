"""Compare: sends example requests through two tables and reports different responses.

In: the served tables before and after. Out: `Change`s, one for each kind of difference, with an example and the number of examples.
Examples come from the matches of every hostname that differs (example_request.py); equal hostnames are skipped.
Must never: distinguish what a client cannot, such as where a rule was written or its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

import msgspec

from edgefast import ir
from edgefast.explain.authz_examples import make_authz_examples
from edgefast.explain.changes import Change, Kind
from edgefast.explain.example_request import (
    ExampleRequest,
    limit_match,
    make_example_requests,
    vary_example_request,
)
from edgefast.explain.explanation import Answer
from edgefast.explain.fleet_pair import ROOT, Pair, make_example, make_host, make_request_spec
from edgefast.explain.made_names import is_made_route
from edgefast.explain.match_failure import describe_match
from edgefast.explain.outcome import Outcome, find_outcome
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import Served
from edgefast.translate.match.hostname import narrower

_HOSTS_NAMED = 3
_ENTRANTS = 4  # matches of a hostname that each set of policies is tried with
_PATHS = 8  # paths of a hostname that are written otherwise where settings of paths differ
#: Parts of paths that those settings affect: parameters, escaped slashes, raw characters.
_ENDINGS = (";any", "%2Fany", "|any?{any}")
_WORDS = {
    "backends": "backends",
    "request_headers": "request headers",
    "response_headers": "response headers",
    "redirect": "redirect",
    "rewrite": "rewrite",
    "mirrors": "mirrors",
    "cors": "CORS",
    "timeouts": "timeouts",
    "retry": "retries",
    "rate_limits": "rate limits",
    "ext_auth": "external authorization",
    "direct": "answer of its own",
    "response_rewrite": "rewrites of responses",
}
_OF_POLICIES = {"policies": "policies", "settings": "settings of policies"}
_ORDER: tuple[Kind, ...] = ("opened", "refused", "lost", "gained", "owner", "answer", "rule")


class _Group(msgspec.Struct):
    """Examples that change in the same way."""

    kind: Kind
    ask: RequestSpec
    before: Outcome
    after: Outcome
    hosts: dict[str, None]
    fields: tuple[str, ...]
    requests: int = 0


def compare_requests(pair: Pair) -> Iterator[Change]:
    """Ask both tables, give what differs."""
    groups = _Groups(pair)
    unknown: list[Change] = []
    for plan in _plan(pair):
        for request in (*plan.asks(pair), *plan.authz_requests(pair)):
            groups.ask(plan, request)
        for match, side in plan.expressions():
            if not any(groups.ask(plan, request) for request in plan.requests_for(pair, match)):
                message = f"{plan.name}: {describe_match(match)} exists {side} only"
                message += "; no example shows a difference"
                unknown.append(Change(kind="unknown", text=message))
    yield from groups.changes()
    yield from unknown


class _Groups:
    """Differences as they are found."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._groups: dict[object, _Group] = {}
        self._was_requested: dict[RequestSpec, bool] = {}

    def ask(self, plan: _Plan, request: RequestSpec) -> bool:
        """Ask both tables, once; tell whether a client sees a difference."""
        if request not in self._was_requested:
            self._was_requested[request] = self._compare(plan, request)
        return self._was_requested[request]

    def _compare(self, plan: _Plan, request: RequestSpec) -> bool:
        before, after = (find_outcome(side, request) for side in self._pair.sides())
        self._pair.examples += 1
        for one in (*before.answers, *after.answers):
            if one.backend:
                self._pair.by_cluster.setdefault(one.backend, request)
        found = classify(before, after)
        if found is None:
            return False
        kind, fields = found
        key = (
            kind,
            plan.port,
            plan.address,
            before.owner(),
            after.owner(),
            _gist(before),
            _gist(after),
            fields,
        )
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(kind, request, before, after, {}, fields)
        group.hosts[plan.name] = None
        group.requests += 1
        return True

    def changes(self) -> Iterator[Change]:
        """Give them, the gravest first."""
        for group in sorted(self._groups.values(), key=lambda one: _ORDER.index(one.kind)):
            yield _write(self._pair, group)


_Entries = dict[tuple[ir.Match, ir.Rule], None]


class _Plan(msgspec.Struct):
    """What to ask of one hostname of a port."""

    port: int
    address: str  # "": all
    name: str
    host: str
    entries: tuple[
        _Entries, _Entries
    ]  # before, after: matches and rules, whose numbers do not count

    def asks(self, pair: Pair) -> Iterator[RequestSpec]:
        """Give requests for all matches of both sides, and one that each changed match takes."""
        found, _ = make_example_requests(self._matches())
        once = dict.fromkeys(self._ask(pair, one) for one in found or [ROOT])
        yield from once
        yield from self._asks_of_settings(pair)
        for number, side in enumerate(pair.sides()):
            for match, rule in self.entries[number]:
                if (match, rule) in self.entries[1 - number]:
                    continue
                ways = (self._ask(pair, one) for one in _vary(side, match, rule))
                taken = (one for one in ways if _takes(side, one, match, rule))
                request = next(taken, None)
                if request is not None and request not in once:
                    yield request
                if request is not None and rule.policies and _is_refused(side, request):
                    request = next((one for one in taken if not _is_refused(side, one)), None)
                    yield from () if request is None else (request,)

    def _asks_of_settings(self, pair: Pair) -> Iterator[RequestSpec]:
        """Yield requests that the port's settings affect, if these settings differ: of HTTP/1.0, and for targets."""
        if {_serves_http10(side, self.port, self.address) for side in pair.sides()} == {
            True,
            False,
        }:
            yield from (
                msgspec.structs.replace(self._ask(pair, one), http10=True)
                for one in make_example_requests(self._matches())[0][:1] or [ROOT]
            )
        first, second = (_find_settings(side, self.port, self.address) for side in pair.sides())
        if not first or not second or first == second:  # a new or removed port is reported anyway
            return
        paths = dict.fromkeys(
            match.path.rstrip("/") or "/any" for match in self._matches() if match.kind != "regex"
        )
        for path in list(paths)[:_PATHS]:
            for ending in _ENDINGS:
                yield self._ask(pair, ExampleRequest("GET", path + ending, ()))

    def authz_requests(self, pair: Pair) -> Iterator[RequestSpec]:
        """Give requests that policies let in or not, for some matches of each set of policies that differ."""
        for match, policies in self._guarded():
            sides = tuple(
                _find_access(side, names)
                for side, names in zip(pair.sides(), policies, strict=True)
            )
            for one, other in zip_longest(*sides):
                if one != other:
                    examples = make_authz_examples(match, (one, other))
                    yield from (self._ask(pair, each) for each in examples)

    def _guarded(self) -> Iterator[tuple[ir.Match, tuple[tuple[str, ...], ...]]]:
        """Give matches with the names of the units that hold for them on either side, few for each set of names."""
        found: dict[ir.Match, list[tuple[str, ...]]] = {}
        for number, entries in enumerate(self.entries):
            for match, rule in entries:
                if rule.policies:
                    found.setdefault(match, [(), ()])[number] = rule.policies
        seen: Counter[tuple[tuple[str, ...], ...]] = Counter()
        for match, names in found.items():
            key = tuple(names)
            seen[key] += 1
            if seen[key] <= _ENTRANTS:
                yield match, key

    def _matches(self) -> Iterator[ir.Match]:
        for entries in self.entries:
            for match, rule in entries:
                yield match
                for limit in rule.rate_limits:
                    limited = limit_match(match, limit)
                    if limited is not None:
                        yield limited

    def expressions(self) -> Iterator[tuple[ir.Match, str]]:
        """Give matches with regular expressions that one side only has, and which: examples may miss what they mean."""
        before, after = ({match for match, _ in entries} for entries in self.entries)
        for match in sorted(before ^ after, key=lambda one: (describe_match(one), repr(one))):
            if match.kind == "regex" or any(one.regex for one in (*match.headers, *match.query)):
                yield match, "before" if match in before else "after"

    def requests_for(self, pair: Pair, match: ir.Match) -> Iterator[RequestSpec]:
        """Give many requests for one match."""
        return (self._ask(pair, one) for one in vary_example_request(match))

    def _ask(self, pair: Pair, example: ExampleRequest) -> RequestSpec:
        return make_request_spec(pair, self.port, self.host, example, self.address)


def _find_settings(side: Served, port: int, address: str) -> tuple[str, ...]:
    """Return the settings of a port for targets."""
    http = [one.http for one in side.listeners(port, address)[:1]]
    return tuple(
        word
        for one in http
        for word in (one.path_parameters, one.escaped_slashes, one.raw_characters)
    )


def _serves_http10(side: Served, port: int, address: str) -> bool | None:
    """Tell whether a port serves HTTP/1.0; None: it has no listener."""
    return next((one.http.http10 for one in side.listeners(port, address)), None)


def _find_access(side: Served, names: tuple[str, ...]) -> tuple[ir.Authorization, ...]:
    units = side.units(names)
    return tuple(one.authorization for one in units if one.authorization is not None)


def _vary(side: Served, match: ir.Match, rule: ir.Rule) -> Iterator[ExampleRequest]:
    """Give ways to write a request for a match, plain ones first, then those that its policies look at."""
    yield from vary_example_request(match)
    for access in _find_access(side, rule.policies):
        yield from make_authz_examples(match, (access,))


def _is_refused(side: Served, request: RequestSpec) -> bool:
    """Tell whether a policy refuses a request: what else differs is not seen by it."""
    return any(one.check == "authorization" for one in find_outcome(side, request).answers)


def _takes(side: Served, request: RequestSpec, match: ir.Match, rule: ir.Rule) -> bool:
    outcome = find_outcome(side, request)
    return outcome.match == match and outcome.rule is not None and outcome.rule.route == rule.route


def _plan(pair: Pair) -> Iterator[_Plan]:
    """Give the hostnames whose tables differ."""
    ports = {one.port for side in pair.sides() for one in side.fleet.listeners}
    places = {
        (port, address)
        for port in ports
        for address in set().union(*(side.addresses(port) for side in pair.sides())) or {""}
    }
    for port, address in sorted(places):
        names: dict[str, tuple[list[ir.VirtualHost], list[ir.VirtualHost]]] = {}
        for number, side in enumerate(pair.sides()):
            for listener in side.listeners(port, address):
                names.setdefault(listener.hostname, ([], []))
                for name, host in side.hosts.get(listener.name, {}).items():
                    names.setdefault(narrower(listener.hostname, name), ([], []))[number].append(
                        host
                    )
        for name in sorted(names):
            host_name = make_host(name, names)
            if not pair.is_same(port, host_name, address):
                before, after = (_entries(hosts) for hosts in names[name])
                yield _Plan(port, address, name, host_name, (before, after))


def _entries(hosts: list[ir.VirtualHost]) -> _Entries:
    found: _Entries = {}
    for host in hosts:
        rules = [msgspec.structs.replace(rule, index=0) for rule in host.rules]
        found.update(((entry.match, rules[entry.rule]), None) for entry in host.entries)
    return found


def classify(before: Outcome, after: Outcome) -> tuple[Kind, tuple[str, ...]] | None:
    """Return how two outcomes differ and, of one rule, in what; None when a client cannot tell."""
    if before.enters and after.refused:
        return "refused", ()
    if after.enters and (before.refused or after.services < before.services):
        return "opened", ()
    if before.backends != after.backends:
        return ("lost" if before.backends else "gained"), ()
    first, second = before.rule, after.rule
    if first is None or second is None:
        return None if _gist(before) == _gist(after) else ("answer", ())
    made = is_made_route(first.route) or is_made_route(second.route)
    if first.route != second.route and not made:
        return "owner", ()
    if _gist(before) != _gist(after):
        return "answer", ()
    fields = tuple(word for field, word in _WORDS.items() if _differs(first, second, field))
    fields += tuple(
        word
        for field, word in _OF_POLICIES.items()
        if getattr(before, field) != getattr(after, field)
    )
    return ("rule", fields) if fields else None


def _differs(first: ir.Rule, second: ir.Rule, field: str) -> bool:
    one, other = getattr(first, field), getattr(second, field)
    if field == "rate_limits":  # what a counter is called is no client's business
        one, other = (
            [msgspec.structs.replace(each, counter="") for each in limits]
            for limits in (one, other)
        )
    if field == "backends":
        one, other = (
            [msgspec.structs.replace(each, reason="") for each in refs] for refs in (one, other)
        )
    return bool(one != other)


def _gist(outcome: Outcome) -> tuple[object, ...]:
    return tuple(_gist_of(one) for one in outcome.answers)


def _gist_of(one: Answer) -> tuple[object, ...]:
    return one.kind, one.status, one.share, one.backend, one.asks


def _write(pair: Pair, group: _Group) -> Change:
    before, after = group.before, group.after
    names = list(group.hosts)
    hosts = ", ".join("any host" if one == "*" else one for one in names[:_HOSTS_NAMED])
    where = f"{hosts} and {len(names) - _HOSTS_NAMED} more" if len(names) > _HOSTS_NAMED else hosts
    old, new = before.owner() or "no rule", after.owner() or "no rule"
    why = next((one.why for one in after.answers if one.why), "")
    match group.kind:
        case "opened" if before.refused:
            message = f"access granted: a request that a policy denied is now allowed by {new}: {after.text()} instead of {before.text()}"
        case "opened":
            message = f"authorization service no longer called, by {new}: {after.text()} instead of {before.text()}"
        case "refused":
            message = (
                f"access denied: a policy now denies a request to {old}: {after.text()}, {why}"
            )
        case "lost":
            message = f"no backend answers any more, from {old}: {after.text()}" + (
                f", {why}" if why else ""
            )
        case "gained":
            message = f"a backend answers now, by {new}: {after.text()} instead of {before.text()}"
        case "owner":
            message = f"{new} instead of {old}"
        case "answer":
            message = f"{after.text()} instead of {before.text()}, by {new}"
        case _:
            message = f"{new} has other {', '.join(group.fields)}"
    return Change(
        kind=group.kind,
        breaks=before.backends and not after.backends,
        opens=group.kind == "opened",
        text=f"{where}: {message}",
        example=make_example(group.ask),
        before=before.side(pair.old),
        after=after.side(pair.new),
        requests=group.requests,
    )
