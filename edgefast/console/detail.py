"""Detail: all facts about one line of the tree, as text.

In: a state, a node.
Out: `Detail`: sections of label and text, in the order of the page. A truncated list contains a
note.
Must never: print key material or credentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from edgefast import ir
from edgefast.api.model.route_name import ref_of_name
from edgefast.console.index import Node
from edgefast.console.live_metrics import Rate
from edgefast.console.policies import (
    list_filters_of,
    list_lost,
    list_policies,
    list_settings,
    list_shares,
)
from edgefast.console.problem_index import ObjectProblems
from edgefast.console.rows import Row, make_row
from edgefast.console.state import State
from edgefast.diagnostics.redact import is_hidden, show, show_query
from edgefast.explain.describe import list_filters
from edgefast.explain.duration import write_time
from edgefast.explain.example_request import make_example_requests
from edgefast.explain.fleet_pair import make_host
from edgefast.explain.match_failure import describe_match
from edgefast.explain.served_fleet import render_endpoint
from edgefast.explain.zones import describe_zones

MOST = 50  # lines of one section

Line = tuple[str, str]  # label and text; the label is "" in a plain list


class Section(msgspec.Struct, frozen=True):
    """Some lines under a heading."""

    title: str
    lines: tuple[Line, ...]
    more: int = 0  # that were cut


class Trial(msgspec.Struct, frozen=True):
    """A request that this line takes, unless a nearer one does: for the explain box."""

    method: str
    url: str
    headers: str = ""


class Detail(msgspec.Struct, frozen=True):
    """One line of the tree."""

    row: Row
    path: tuple[Line, ...]  # id and name of its ancestors, and of itself
    places: tuple[int, ...]  # its and its ancestors' numbers among their siblings, sorted by name
    sections: tuple[Section, ...]
    problems: tuple[ObjectProblems, ...]
    more_problems: int
    since_start: dict[str, float | None]
    rate: Rate | None
    trial: Trial | None


def describe_node(state: State, node: Node) -> Detail:
    """Return all about a node."""
    path = node.path()[1:]
    row = make_row(state, node)
    # A backend has none of its own: what is wrong with it is said of its rule.
    of = node.parent if node.kind == "backend" and row.errors and node.parent else node
    reported = state.marks.below(of)
    return Detail(
        row=row,
        path=tuple((one.id, one.name) for one in path),
        places=tuple(one.place for one in path),
        sections=tuple(one for one in _sections(state, node) if one.lines),
        problems=tuple(reported[:MOST]),
        more_problems=max(0, len(reported) - MOST),
        since_start=state.numbers.since_start(node.labels),
        rate=state.numbers.rate(node.labels) if node.kind != "backend" else None,
        trial=make_trial(node),
    )


def _section(title: str, lines: Iterable[Line]) -> Section:
    found = tuple(lines)
    return Section(title, found[:MOST], max(0, len(found) - MOST))


def _sections(state: State, node: Node) -> Iterator[Section]:
    match node.subject:
        case ir.Listener() as listener:
            yield from _describe_listener(state, listener, node)
        case ir.VirtualHost() as host:
            yield _section(
                "Virtual host",
                [
                    ("hostname", "any host" if host.hostname == "*" else host.hostname),
                    ("listener", host.listener),
                    ("rules", str(len(host.rules))),
                    ("matches", str(len(host.entries))),
                ],
            )
        case ir.Rule() as rule:
            yield from _describe_rule(state, node, rule)
        case ir.StreamRoute() as route:
            what = "any" if route.hostname == "*" else route.hostname
            lines = [("server name", what)] if "." in what else []
            reported = [("refused", route.reason)] if route.reason else []
            yield _section("Route", [("route", route.route), *lines, *reported])
        case ir.BackendRef() | ir.StreamBackend() as share:
            yield from _describe_share(state, share)
        case _:
            listeners = node.children
            yield _section(
                "Gateway",
                [
                    ("listeners", str(len(listeners))),
                    ("virtual hosts", str(sum(len(one.children) for one in listeners))),
                    ("rules", str(node.rules)),
                ],
            )


def _describe_listener(state: State, listener: ir.Listener, node: Node) -> Iterator[Section]:
    http = listener.http
    yield _section(
        "Listener",
        [
            ("port", str(listener.port)),
            *([("bound", str(listener.bind_port))] if listener.bind_port != listener.port else []),
            *([("addresses", ", ".join(listener.addresses))] if listener.addresses else []),
            ("protocol", listener.protocol),
            ("hostname", "any host" if listener.hostname == "*" else listener.hostname),
            ("virtual hosts", str(len(node.children))),
            ("rules", str(node.rules)),
        ],
    )
    tls = listener.tls
    if tls is not None:
        lines = [("certificate", name) for name in tls.certificates]
        lines.append(("from version", tls.min_version))
        if tls.client_ca:
            lines.append(("client certificates of", tls.client_ca))
        yield _section("TLS", lines)
    if listener.filters:
        yield _section("Filters before routing", [*list_filters_of(state, listener)])
    address = http.client_address
    yield _section(
        "Limits and timeouts",
        [
            ("request head", _size(http.request_head)),
            ("request line", _size(http.request_line)),
            ("headers", str(http.header_count)),
            ("request body", _size(http.body_size) if http.body_size else "no limit"),
            ("head within", write_time(http.head_timeout)),
            ("idle", write_time(http.idle_timeout)),
            ("route timeout", write_time(http.route_timeout)),
            ("connect within", write_time(http.connect_timeout)),
            ("connections per worker", str(http.max_connections)),
            *([("trusted hops", str(address.trusted_hops))] if address.trusted_hops else []),
            *(("trusted network", one) for one in address.trusted_cidrs),
        ],
    )


def _describe_rule(state: State, node: Node, rule: ir.Rule) -> Iterator[Section]:
    ref = ref_of_name(rule.route)
    yield _section(
        "Rule",
        [
            (ref.kind, f"{ref.namespace}/{ref.name}"),
            ("rule", f"{rule.index}" + (f" ({rule.name})" if rule.name else "")),
            *([("written in", rule.source)] if rule.source else []),
            *([("answers", f"{rule.status}, {rule.reason}".rstrip(", "))] if rule.status else []),
        ],
    )
    yield _section("Takes", [("", describe_match(one)) for one in node.matches])
    yield _section("Filters", [("", one) for one in list_filters(rule)])
    total = sum(one.weight for one in rule.backends) or 1
    yield _section(
        "Backends",
        [
            (
                f"{100 * one.weight / total:.3g} %",
                one.cluster or f"answers {one.status}: {one.reason}",
            )
            for one in rule.backends
        ],
    )
    yield _section(
        "Mirrors", [(f"{m.numerator} of {m.denominator}", m.cluster) for m in rule.mirrors]
    )
    yield _section("Policies", list_policies(state, rule))
    yield _section("Settings of policies", list_settings(state, rule, _http_of(node)))
    yield _section("Settings of backends", list_shares(state, rule))
    yield _section("Policies without effect", list_lost(rule))
    yield _section("Rate limits", [(one.name, write_limit(one)) for one in rule.rate_limits])
    times: list[Line] = []
    if rule.timeouts is not None:
        for label, value in (
            ("request", rule.timeouts.request),
            ("each try", rule.timeouts.backend_request),
        ):
            if value is not None:
                times.append((label, write_time(value)))
    if rule.retry is not None:
        codes = f" on {', '.join(map(str, rule.retry.codes))}" if rule.retry.codes else ""
        times.append(("retries", f"{rule.retry.attempts}{codes}"))
    yield _section("Timeouts and retries", times)


def _http_of(node: Node) -> ir.HttpSettings | None:
    """Return the settings of the listener that a rule is below."""
    found = (one.subject for one in node.path())
    return next((one.http for one in found if isinstance(one, ir.Listener)), None)


def _describe_share(state: State, share: ir.BackendRef | ir.StreamBackend) -> Iterator[Section]:
    cluster = state.index.clusters.get(share.cluster)
    if cluster is None:
        status = share.status if isinstance(share, ir.BackendRef) else "refused"
        yield _section("Backend", [("answers", f"{status}: {share.reason}")])
        return
    yield _section(
        "Backend",
        [
            ("name", cluster.name),
            ("weight", str(share.weight)),
            *([("TLS, for", cluster.tls.sni)] if cluster.tls is not None else []),
            *(
                [("zones", f"endpoints {describe_zones(cluster.zones)}, as its Service sets")]
                if cluster.zones is not None
                else []
            ),
            ("connections", f"{cluster.max_connections}, and {cluster.max_pending} waiting"),
        ],
    )
    yield _section("Endpoints", [(one.zone, render_endpoint(one)) for one in cluster.endpoints])
    yield _section(
        "Terminating endpoints", [(one.zone, render_endpoint(one)) for one in cluster.fallback]
    )


def _try_stream(route: ir.StreamRoute, listener: object) -> Trial | None:
    if not isinstance(listener, ir.Listener):
        return None
    wide = listener.hostname if route.hostname == "*" else route.hostname
    url = f"{listener.protocol.lower()}://{make_host(wide, ())}:{listener.port}"
    return Trial("CONNECT", url, "")


def make_trial(node: Node) -> Trial | None:
    """Return a request for a rule, None when none can be made, or none that may be shown."""
    rule = node if node.kind == "rule" else node.parent if node.kind == "backend" else None
    if rule is None or rule.parent is None or rule.parent.parent is None:
        return None
    if isinstance(rule.subject, ir.StreamRoute):
        return _try_stream(rule.subject, rule.parent.subject)
    host, listener = rule.parent.subject, rule.parent.parent.subject
    if not isinstance(host, ir.VirtualHost) or not isinstance(listener, ir.Listener):
        return None
    examples, _ = make_example_requests(rule.matches[:1])
    if not examples:
        return None
    wide = listener.hostname if host.hostname == "*" else host.hostname
    name = make_host(wide, {one.name for one in rule.parent.parent.children[:1000]})
    scheme = "https" if listener.protocol == "HTTPS" else "http"
    port = "" if listener.port == (443 if scheme == "https" else 80) else f":{listener.port}"
    one = examples[0]
    if show_query(one.target) != one.target or any(is_hidden(*line) for line in one.headers):
        return None  # who has the credential writes the request
    return Trial(
        one.method,
        f"{scheme}://{name}{port}{one.target}",
        "\n".join(f"{header}: {value}" for header, value in one.headers),
    )


def write_limit(one: ir.RateLimit) -> str:
    """Return what a limit lets through, in words."""
    message = f"{one.requests} in progress"
    if one.kind != "Parallel":
        message = f"{one.requests} in {write_time(one.unit * 1000)}"
    if one.kind == "Bucket":
        message += f", burst {one.burst}"
    by = [*one.distinct_headers, *(["client address"] if one.distinct_source else [])]
    if by:
        message += f" for each {', '.join(by)}"
    only = [f"{h.name}{' ~ ' if h.regex else ': '}{show(h.name, h.value)}" for h in one.headers]
    only += one.sources
    if only:
        message += f", of {', '.join(only)}"
    if one.excepts:
        message += f", except {', '.join(one.excepts)}"
    return message + (", sliding" if one.sliding else "") + (", shadow" if one.shadow else "")


def _size(count: int) -> str:
    for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count % size == 0:
            return f"{count // size} {name}"
    return f"{count} bytes"
