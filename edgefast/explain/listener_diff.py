"""Listener diff: listeners, hostnames and endpoints that come, go or change.

In: a pair of tables. Out: `Change`s, each with a request to try. Must never: match requests;
compare.py does.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast import ir
from edgefast.explain.changes import Change, Example, Kind
from edgefast.explain.fleet_pair import ROOT, Pair, make_example, make_host, make_request_spec
from edgefast.explain.layer4_diff import stream_example
from edgefast.explain.served_fleet import Served, first_of, render_endpoint
from edgefast.translate.match.hostname import narrower


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
        request = pair.by_cluster.get(name)
        yield Change(
            kind="endpoints",
            text=f"{name} has other endpoints: {' '.join(moves[:8])}{more}",
            example=make_example(request) if request is not None else None,
        )


def _addresses(one: ir.Cluster) -> set[str]:
    return {render_endpoint(each) for each in one.endpoints or one.fallback}


def compare_hosts(pair: Pair) -> Iterator[Change]:
    """Give listeners and hostnames that appear, vanish or change."""
    moves: tuple[tuple[Kind, Kind, Served, Served, str], ...] = (
        ("listener_removed", "host_removed", pair.old, pair.new, "is gone"),
        ("listener_added", "host_added", pair.new, pair.old, "is new"),
    )
    for kind, _, ours, theirs, word in moves:
        known = {one.name for one in theirs.fleet.listeners}
        for one in ours.fleet.listeners:
            if one.name not in known:
                host = "any host" if one.hostname == "*" else one.hostname
                at = f" of {', '.join(one.addresses)}" if one.addresses else ""
                message = (
                    f"listener {one.name} (port {one.port}{at}, {one.protocol}, {host}) {word}"
                )
                yield Change(kind=kind, text=message, example=_example(pair, one))
    yield from _compare_listeners(pair)
    for _, kind, ours, theirs, word in moves:
        for port, address, name in sorted(_hostnames(ours) - _hostnames(theirs)):
            at = f" of {address}" if address else ""
            message = f"{'any host' if name == '*' else f'host {name}'} on port {port}{at} {word}"
            request = make_request_spec(pair, port, make_host(name, ()), ROOT, address)
            yield Change(kind=kind, text=message, example=make_example(request))


_OF_LISTENER = (
    *(
        "port",
        "addresses",
        "protocol",
        "hostname",
        "tls",
        "stream",
        "access_log",
        "tracing",
        "filters",
    ),
)


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
        fields += [field for field in _OF_LISTENER if getattr(after, field) != getattr(old, field)]
        if not fields:  # the port to bind: of no interest to a client
            continue
        message = f"listener {after.name} has other {', '.join(fields)}"
        opens = _asks_certificate(old) and not _asks_certificate(after)
        if opens:
            message += ": clients no longer need a certificate"
        elif len(after.filters) < len(old.filters):
            opens = True
            message += ": an authorization service is no longer called"
        kind: Kind = "opened" if opens else "listener"
        yield Change(kind=kind, opens=opens, text=message, example=_example(pair, after))


def _asks_certificate(one: ir.Listener) -> bool:
    tls = one.tls
    if tls is not None and tls.client_rule is not None:
        return tls.client_rule.mode == "required"
    return tls is not None and bool(tls.client_ca) and not tls.client_insecure_fallback


def _example(pair: Pair, one: ir.Listener) -> Example:
    host = make_host(one.hostname, ())
    if one.protocol not in ("HTTP", "HTTPS"):
        return stream_example(one.protocol.lower(), one.port, host, first_of(one))
    return make_example(make_request_spec(pair, one.port, host, ROOT, first_of(one)))


def _hostnames(side: Served) -> set[tuple[int, str, str]]:
    return {
        (one.port, first_of(one) if side.addresses(one.port) else "", narrower(one.hostname, name))
        for one in side.fleet.listeners
        for name in side.hosts.get(one.name, {})
    }
