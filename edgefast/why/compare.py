"""Compare: example requests through two tables, and what they get otherwise.

In: what is served before and after. Out: `Change`s, one for each way in which requests are answered otherwise, with an
example and how many were found. Examples are made from the matches of every hostname that differs (witness.py); equal
hostnames are not asked. Must never: tell apart what a client cannot, such as where a rule was written or its number.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

import msgspec

from edgefast import ir
from edgefast.table.match import find_listener, order_hostnames
from edgefast.translate.hostname import narrower
from edgefast.why.ask import Ask
from edgefast.why.changes import Change, Example, Kind
from edgefast.why.explanation import Answer
from edgefast.why.outcome import Outcome, find_outcome
from edgefast.why.served import Served, render_endpoint
from edgefast.why.trial import describe_match
from edgefast.why.witness import Witness, limit_match, make_witnesses, vary_witness

#: Hosts for a wildcard or for any host: the first that no table names.
_LABELS = ("any", "other", "example", "probe")
_TLDS = ("example", "test", "invalid")
_ROOT = Witness("GET", "/", ())
_HOSTS_NAMED = 3
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
}
_RANK: dict[Kind, int] = {"lost": 0, "gained": 1, "owner": 2, "answer": 3, "rule": 4}


class Pair:
    """The same fleet before and after."""

    def __init__(self, old: Served, new: Served) -> None:
        self.old = old
        self.new = new
        self.examples = 0
        self.by_cluster: dict[str, Ask] = {}  # an example that goes there, before or after
        self._moved = {
            name
            for name in old.clusters.keys() | new.clusters.keys()
            if old.clusters.get(name) != new.clusters.get(name)
        }
        self._same: dict[tuple[str, str], bool] = {}

    def sides(self) -> tuple[Served, Served]:
        """Return before and after."""
        return self.old, self.new

    def is_same(self, port: int, host: str) -> bool:
        """Tell whether a host's requests meet equal tables."""
        owners = [find_listener(side.fleet.listeners, port, host) for side in self.sides()]
        if owners[0] is None or owners[1] is None or _facade(owners[0]) != _facade(owners[1]):
            return owners[0] is owners[1]
        return all(self._is_same_host(owners[0].name, name) for name in order_hostnames(host))

    def _is_same_host(self, listener: str, hostname: str) -> bool:
        key = (listener, hostname)
        if key not in self._same:
            old, new = (side.hosts.get(listener, {}).get(hostname) for side in self.sides())
            self._same[key] = old == new and (old is None or not self._moved & _clusters(old))
        return self._same[key]


def _facade(one: ir.Listener) -> tuple[object, ...]:
    return one.name, one.hostname, one.protocol, one.http


def _clusters(host: ir.VirtualHost) -> set[str]:
    return {share.cluster for rule in host.rules for share in rule.backends}


# --- requests -----------------------------------------------------------------------------------------------------


class _Group(msgspec.Struct):
    """Examples that change in the same way."""

    kind: Kind
    ask: Ask
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
        for ask in plan.asks(pair):
            groups.ask(plan, ask)
        for match, side in plan.expressions():
            if not any([groups.ask(plan, ask) for ask in plan.asks_for(pair, match)]):
                said = f"{plan.name}: {describe_match(match)} is there {side} only"
                said += "; no example shows a difference"
                unknown.append(Change(kind="unknown", text=said))
    yield from groups.changes()
    yield from unknown


class _Groups:
    """Differences as they are found."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._groups: dict[object, _Group] = {}
        self._asked: dict[Ask, bool] = {}

    def ask(self, plan: _Plan, ask: Ask) -> bool:
        """Ask both tables, once; tell whether a client sees a difference."""
        if ask not in self._asked:
            self._asked[ask] = self._compare(plan, ask)
        return self._asked[ask]

    def _compare(self, plan: _Plan, ask: Ask) -> bool:
        before, after = (find_outcome(side, ask) for side in self._pair.sides())
        self._pair.examples += 1
        for one in (*before.answers, *after.answers):
            if one.backend:
                self._pair.by_cluster.setdefault(one.backend, ask)
        found = classify(before, after)
        if found is None:
            return False
        kind, fields = found
        key = (kind, plan.port, before.owner(), after.owner(), _gist(before), _gist(after), fields)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(kind, ask, before, after, {}, fields)
        group.hosts[plan.name] = None
        group.requests += 1
        return True

    def changes(self) -> Iterator[Change]:
        """Give them, the gravest first."""
        for group in sorted(self._groups.values(), key=lambda one: _RANK[one.kind]):
            yield _write(self._pair, group)


_Entries = dict[tuple[ir.Match, ir.Rule], None]


class _Plan(msgspec.Struct):
    """What to ask of one hostname of a port."""

    port: int
    name: str
    host: str
    entries: tuple[
        _Entries, _Entries
    ]  # before, after: matches and rules, whose numbers do not count

    def asks(self, pair: Pair) -> Iterator[Ask]:
        """Give requests for all matches of both sides, and one that each changed match takes."""
        found, _ = make_witnesses(self._matches())
        once = dict.fromkeys(_ask(pair, self.port, self.host, one) for one in found or [_ROOT])
        yield from once
        for number, side in enumerate(pair.sides()):
            for match, rule in self.entries[number]:
                if (match, rule) in self.entries[1 - number]:
                    continue
                ways = (_ask(pair, self.port, self.host, one) for one in vary_witness(match))
                taken = (one for one in ways if _takes(side, one, match, rule))
                ask = next(taken, None)
                if ask is not None and ask not in once:
                    yield ask

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
        for match in sorted(before ^ after, key=describe_match):
            if match.kind == "regex" or any(one.regex for one in (*match.headers, *match.query)):
                yield match, "before" if match in before else "after"

    def asks_for(self, pair: Pair, match: ir.Match) -> Iterator[Ask]:
        """Give many requests for one match."""
        return (_ask(pair, self.port, self.host, one) for one in vary_witness(match))


def _takes(side: Served, ask: Ask, match: ir.Match, rule: ir.Rule) -> bool:
    outcome = find_outcome(side, ask)
    return outcome.match == match and outcome.rule is not None and outcome.rule.route == rule.route


def _plan(pair: Pair) -> Iterator[_Plan]:
    """Give the hostnames whose tables differ."""
    ports = sorted({one.port for side in pair.sides() for one in side.fleet.listeners})
    for port in ports:
        names: dict[str, tuple[list[ir.VirtualHost], list[ir.VirtualHost]]] = {}
        for number, side in enumerate(pair.sides()):
            for listener in side.listeners(port):
                names.setdefault(listener.hostname, ([], []))
                for name, host in side.hosts.get(listener.name, {}).items():
                    names.setdefault(narrower(listener.hostname, name), ([], []))[number].append(
                        host
                    )
        for name in sorted(names):
            host_name = make_host(name, names)
            if not pair.is_same(port, host_name):
                before, after = (_entries(hosts) for hosts in names[name])
                yield _Plan(port, name, host_name, (before, after))


def _entries(hosts: list[ir.VirtualHost]) -> _Entries:
    found: _Entries = {}
    for host in hosts:
        rules = [msgspec.structs.replace(rule, index=0) for rule in host.rules]
        found.update(((entry.match, rules[entry.rule]), None) for entry in host.entries)
    return found


def make_host(name: str, taken: Container[str]) -> str:
    """Return a host that a hostname stands for, and no other of the names."""
    if name == "*":
        made = (f"{label}.{tld}" for label in _LABELS for tld in _TLDS)
        free = (
            one
            for one in made
            if not any(each in taken for each in order_hostnames(one) if each != "*")
        )
        return next(free, "any.example")
    if name.startswith("*."):
        labels = (f"{label}{name[1:]}" for label in _LABELS)
        return next((one for one in labels if one not in taken), f"any{name[1:]}")
    return name


def _ask(pair: Pair, port: int, host: str, witness: Witness) -> Ask:
    listeners = pair.old.listeners(port) or pair.new.listeners(port)
    scheme = "https" if listeners[0].protocol == "HTTPS" else "http"
    default = port == (443 if scheme == "https" else 80)
    return Ask(
        method=witness.method,
        scheme=scheme,
        port=port,
        host=host if default else f"{host}:{port}",
        target=witness.target,
        headers=witness.headers,
        sni=host if scheme == "https" else "",
    )


def classify(before: Outcome, after: Outcome) -> tuple[Kind, tuple[str, ...]] | None:
    """Return how two outcomes differ and, of one rule, in what; None when a client cannot tell."""
    if before.backends != after.backends:
        return ("lost" if before.backends else "gained"), ()
    first, second = before.rule, after.rule
    if first is None or second is None:
        return None if _gist(before) == _gist(after) else ("answer", ())
    if first.route != second.route:
        return "owner", ()
    if _gist(before) != _gist(after):
        return "answer", ()
    fields = tuple(word for field, word in _WORDS.items() if _differs(first, second, field))
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
    return one.kind, one.status, one.share, one.backend


def make_example(ask: Ask) -> Example:
    """Return an example for people."""
    return Example(method=ask.method, url=ask.url(), headers=ask.headers)


def _write(pair: Pair, group: _Group) -> Change:
    before, after = group.before, group.after
    names = list(group.hosts)
    hosts = ", ".join("any host" if one == "*" else one for one in names[:_HOSTS_NAMED])
    where = f"{hosts} and {len(names) - _HOSTS_NAMED} more" if len(names) > _HOSTS_NAMED else hosts
    old, new = before.owner() or "no rule", after.owner() or "no rule"
    match group.kind:
        case "lost":
            why = next((one.why for one in after.answers if one.why), "")
            said = f"no backend any more, from {old}: {after.text()}" + (f", {why}" if why else "")
        case "gained":
            said = f"a backend now, by {new}: {after.text()} instead of {before.text()}"
        case "owner":
            said = f"{new} instead of {old}"
        case "answer":
            said = f"{after.text()} instead of {before.text()}, by {new}"
        case _:
            said = f"{new} has other {', '.join(group.fields)}"
    return Change(
        kind=group.kind,
        breaks=group.kind == "lost",
        text=f"{where}: {said}",
        example=make_example(group.ask),
        before=before.side(pair.old),
        after=after.side(pair.new),
        requests=group.requests,
    )


# --- what else a table has ------------------------------------------------------------------------------------------


def compare_endpoints(pair: Pair) -> Iterator[Change]:
    """Give clusters whose endpoints differ, of those that both tables have."""
    for name in sorted(pair.old.clusters.keys() & pair.new.clusters.keys()):
        before, after = (_addresses(side.clusters[name]) for side in pair.sides())
        if before == after:
            continue
        moves = [f"+{one}" for one in sorted(after - before)] + [
            f"-{one}" for one in sorted(before - after)
        ]
        more = f" and {len(moves) - 8} more" if len(moves) > 8 else ""
        ask = pair.by_cluster.get(name)
        yield Change(
            kind="endpoints",
            text=f"{name} has other endpoints: {' '.join(moves[:8])}{more}",
            example=make_example(ask) if ask is not None else None,
        )


def _addresses(one: ir.Cluster) -> set[str]:
    return {render_endpoint(each) for each in one.endpoints or one.fallback}


def compare_hosts(pair: Pair) -> Iterator[Change]:
    """Give listeners and hostnames that appear, vanish or change."""
    for kind, ours, theirs, word in (
        ("listener_removed", pair.old, pair.new, "is gone"),
        ("listener_added", pair.new, pair.old, "is new"),
    ):
        known = {one.name for one in theirs.fleet.listeners}
        for one in ours.fleet.listeners:
            if one.name not in known:
                host = "any host" if one.hostname == "*" else one.hostname
                said = f"listener {one.name} (port {one.port}, {one.protocol}, {host}) {word}"
                ask = _ask(pair, one.port, make_host(one.hostname, ()), _ROOT)
                yield Change(kind=kind, text=said, example=make_example(ask))  # type: ignore[arg-type]
    yield from _compare_listeners(pair)
    names = [_hostnames(side) for side in pair.sides()]
    for kind, ours_, theirs_, word in (
        ("host_removed", names[0], names[1], "is gone"),
        ("host_added", names[1], names[0], "is new"),
    ):
        for port, name in sorted(ours_ - theirs_):
            said = f"{'any host' if name == '*' else f'host {name}'} on port {port} {word}"
            ask = _ask(pair, port, make_host(name, ()), _ROOT)
            yield Change(kind=kind, text=said, example=make_example(ask))  # type: ignore[arg-type]


def _compare_listeners(pair: Pair) -> Iterator[Change]:
    before = {one.name: one for one in pair.old.fleet.listeners}
    for after in pair.new.fleet.listeners:
        old = before.get(after.name)
        if old is None or old == after:
            continue
        fields = [
            f"http.{field}"
            for field in after.http.__struct_fields__
            if getattr(after.http, field) != getattr(old.http, field)
        ]
        fields += [
            field
            for field in ("port", "protocol", "hostname", "tls", "access_log")
            if getattr(after, field) != getattr(old, field)
        ]
        if not fields:  # the port to bind: of no interest to a client
            continue
        ask = _ask(pair, after.port, make_host(after.hostname, ()), _ROOT)
        said = f"listener {after.name} has other {', '.join(fields)}"
        yield Change(kind="listener", text=said, example=make_example(ask))


def _hostnames(side: Served) -> set[tuple[int, str]]:
    return {
        (one.port, narrower(one.hostname, name))
        for one in side.fleet.listeners
        for name in side.hosts.get(one.name, {})
    }
