"""Example commands: curl commands for a fleet that was just started, and the hosts of a listener.

In: a fleet, its compiled table, the listening addresses.
Out: hostnames that have routes on a listener; curl commands, the first of each listener and route.
edgefast.explain verifies each command on the table first: it must reach the backend of its route.
Must never: show a credential, or print a command that reaches another rule or none.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

from edgefast import ir
from edgefast.diagnostics.redact import is_hidden, show_query
from edgefast.explain import RequestSpec, Served
from edgefast.explain.example_request import ExampleRequest, make_example_requests
from edgefast.explain.fleet_pair import make_host
from edgefast.explain.served_fleet import first_of
from edgefast.httpd.address import Address
from edgefast.proxy.sockets.bind_address import Place, host_of, is_of
from edgefast.table import Shards
from edgefast.table.match import find_listener
from edgefast.translate.match.hostname import ANY, narrower

__all__ = ["list_hosts", "write_commands"]

_COMMANDS = 8
_PER_ROUTE = 2
#: Requests that are explained at most: a start does not wait for rules that nobody can be shown an example of.
_TRIED = 64
_MATCHES = 8  # of one route on one host
_LOCAL = "localhost"
_LOOPBACK = ("127.0.0.1", "::1")
_EVERY = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def list_hosts(fleet: ir.Fleet) -> dict[str, list[str]]:
    """Return, for each listener, the hostnames whose requests its routes get: what both allow, and no nearer listener has."""
    listeners = {one.name: one for one in fleet.listeners}
    by_port: dict[tuple[int, tuple[str, ...]], list[ir.Listener]] = {}
    for one in fleet.listeners:
        by_port.setdefault((one.port, one.addresses), []).append(one)
    found: dict[str, dict[str, None]] = {}
    for host in fleet.virtual_hosts:
        listener = listeners.get(host.listener)
        if listener is None:
            continue
        name = narrower(listener.hostname, host.hostname)
        near = by_port[listener.port, listener.addresses]
        sample = make_host(name, {one.hostname for one in near})
        if find_listener(near, listener.port, sample) is listener:
            found.setdefault(listener.name, {})[name] = None
    return {name: sorted(hosts) for name, hosts in found.items()}


def write_commands(fleet: ir.Fleet, shards: Shards | None, bound: Sequence[Place]) -> Iterator[str]:
    """Yield curl commands; none for a listener that is not bound, or whose rules no plain request reaches."""
    served = Served(fleet, shards)
    listeners = {one.name: one for one in fleet.listeners}
    places = {
        one.name: found
        for one in fleet.listeners
        if (found := [host_of(place) for place in bound if is_of(place, one)])
    }
    reported: dict[str, int] = {}  # by listener and route
    queues = _Queues()
    for host in fleet.virtual_hosts:
        listener = listeners.get(host.listener)
        if listener is not None and listener.name in places:
            queues.add(listener, host)
    for listener, host, match, rule in islice(queues.take(), _TRIED):
        key = f"{listener.name} {rule.route}"
        if reported.get(key, 0) == _PER_ROUTE:
            continue
        address = _choose(places[listener.name])
        request = _find_ask(served, listener, host, match, rule)
        if request is None:
            continue
        reported[key] = reported.get(key, 0) + 1
        yield _write(listener, request, address)
        if sum(reported.values()) == _COMMANDS:
            return


_Draft = tuple[ir.Listener, ir.VirtualHost, ir.Match, ir.Rule]


class _Queues:
    """Matches of each listener and route, taken in turns: the first of all come first."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, str], list[_Draft]] = {}

    def add(self, listener: ir.Listener, host: ir.VirtualHost) -> None:
        """Take in what a host has, of each route the first few."""
        for entry in host.entries:
            rule = host.rules[entry.rule]
            queue = self._queues.setdefault((listener.name, rule.route), [])
            if len(queue) < _MATCHES:
                queue.append((listener, host, entry.match, rule))

    def take(self) -> Iterator[_Draft]:
        """Give the first of each, then the second of each, and so on."""
        for at in range(_MATCHES):
            for queue in self._queues.values():
                if at < len(queue):
                    yield queue[at]


def _find_ask(
    served: Served, listener: ir.Listener, host: ir.VirtualHost, match: ir.Match, rule: ir.Rule
) -> RequestSpec | None:
    """Return a request that the rule takes and answers; None when none is found, or none that may be shown."""
    from edgefast.explain.outcome import find_outcome  # a start says first that it serves

    examples, _ = make_example_requests((match,))
    name = narrower(listener.hostname, host.hostname)
    taken = {one.hostname for one in served.listeners(listener.port, first_of(listener))}
    taken.update(served.hosts.get(listener.name, {}))
    names = [make_host(name, taken)] if name != ANY else [_LOCAL, make_host(name, taken)]
    for one in examples:
        if show_query(one.target) != one.target or any(is_hidden(*line) for line in one.headers):
            continue
        for known in names:
            request = _ask(listener, known, one)
            found = find_outcome(served, request)
            right = found.rule is not None and found.rule.route == rule.route
            if right and all(answer.kind in ("backend", "redirect") for answer in found.answers):
                return request
    return None


def _ask(listener: ir.Listener, name: str, example: ExampleRequest) -> RequestSpec:
    tls = listener.protocol == "HTTPS"
    default = listener.port == (443 if tls else 80)
    return RequestSpec(
        method=example.method,
        scheme="https" if tls else "http",
        port=listener.port,
        host=name if default else f"{name}:{listener.port}",
        target=example.target,
        headers=example.headers,
        sni=name if tls else "",
        address=first_of(listener),
    )


def _choose(addresses: Sequence[str]) -> str:
    """Return the address that a client of this machine reaches the port at."""
    reachable = [_EVERY.get(one, one) for one in addresses]
    return next((one for one in _LOOPBACK if one in reachable), reachable[0])


def _write(listener: ir.Listener, request: RequestSpec, address: str) -> str:
    words = ["curl", "-i", "-g"] if set("[]{}") & set(request.target) else ["curl", "-i"]
    if request.method == "HEAD":
        words.append("--head")
    elif request.method != "GET":
        words += ["-X", request.method]
    more = ""
    if listener.tls is not None:
        words.append("-k")
        rule = listener.tls.client_rule
        if (rule is not None and rule.mode == "required") or (
            listener.tls.client_ca and not listener.tls.client_insecure_fallback
        ):
            words += ["--cert", "CLIENT.pem"]
            more = "  # with a client certificate that the listener trusts"
    if listener.http.client_address.proxy_protocol == "required":
        words.append("--haproxy-protocol")
    for name, value in request.headers:
        words += ["-H", f"{name}: {value}" if value else f"{name};"]
    name = request.name()
    if name != _LOCAL or address not in _LOOPBACK:
        place = f"[{address}]" if ":" in address else address
        words += ["--resolve", f"{name}:{listener.bind_port}:{place}"]
    where = Address(name, listener.bind_port)
    words.append(f"{request.scheme}://{where}{request.target}")
    return shlex.join(words) + more
