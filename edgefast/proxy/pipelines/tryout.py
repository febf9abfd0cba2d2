"""Try-out: commands that reach a fleet that has just been served, for whoever has started it; and the hosts of a listener.

In: a fleet, its compiled table, the places that are listened on. Out: hostnames that a listener really has requests of; curl
commands, the first of each listener and route. Every one is tried on the table (edgefast.why) before it is told: it must go where
its route says. Must never: show a credential, or tell a command that meets another rule, or none.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

from edgefast import ir
from edgefast.credential import is_hidden, show_query
from edgefast.daemon.address import Address
from edgefast.proxy.sockets.place import Place, host_of, is_of
from edgefast.table import Shards
from edgefast.table.match import find_listener
from edgefast.translate.match.hostname import ANY, narrower
from edgefast.why import Ask, Served
from edgefast.why.pair import make_host
from edgefast.why.served import first_of
from edgefast.why.witness import Witness, make_witnesses

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
    told: dict[str, int] = {}  # by listener and route
    queues = _Queues()
    for host in fleet.virtual_hosts:
        listener = listeners.get(host.listener)
        if listener is not None and listener.name in places:
            queues.add(listener, host)
    for listener, host, match, rule in islice(queues.take(), _TRIED):
        key = f"{listener.name} {rule.route}"
        if told.get(key, 0) == _PER_ROUTE:
            continue
        address = _choose(places[listener.name])
        ask = _find_ask(served, listener, host, match, rule)
        if ask is None:
            continue
        told[key] = told.get(key, 0) + 1
        yield _write(listener, ask, address)
        if sum(told.values()) == _COMMANDS:
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
) -> Ask | None:
    """Return a request that the rule takes and answers; None when none is found, or none that may be shown."""
    from edgefast.why.outcome import find_outcome  # a start says first that it serves

    witnesses, _ = make_witnesses((match,))
    name = narrower(listener.hostname, host.hostname)
    taken = {one.hostname for one in served.listeners(listener.port, first_of(listener))}
    taken.update(served.hosts.get(listener.name, {}))
    names = [make_host(name, taken)] if name != ANY else [_LOCAL, make_host(name, taken)]
    for one in witnesses:
        if show_query(one.target) != one.target or any(is_hidden(*line) for line in one.headers):
            continue
        for known in names:
            ask = _ask(listener, known, one)
            found = find_outcome(served, ask)
            right = found.rule is not None and found.rule.route == rule.route
            if right and all(answer.kind in ("backend", "redirect") for answer in found.answers):
                return ask
    return None


def _ask(listener: ir.Listener, name: str, witness: Witness) -> Ask:
    tls = listener.protocol == "HTTPS"
    default = listener.port == (443 if tls else 80)
    return Ask(
        method=witness.method,
        scheme="https" if tls else "http",
        port=listener.port,
        host=name if default else f"{name}:{listener.port}",
        target=witness.target,
        headers=witness.headers,
        sni=name if tls else "",
        address=first_of(listener),
    )


def _choose(addresses: Sequence[str]) -> str:
    """Return the address that a client of this machine reaches the port at."""
    reachable = [_EVERY.get(one, one) for one in addresses]
    return next((one for one in _LOOPBACK if one in reachable), reachable[0])


def _write(listener: ir.Listener, ask: Ask, address: str) -> str:
    words = ["curl", "-i", "-g"] if set("[]{}") & set(ask.target) else ["curl", "-i"]
    if ask.method == "HEAD":
        words.append("--head")
    elif ask.method != "GET":
        words += ["-X", ask.method]
    more = ""
    if listener.tls is not None:
        words.append("-k")
        if listener.tls.client_ca and not listener.tls.client_insecure_fallback:
            words += ["--cert", "CLIENT.pem"]
            more = "  # with a client certificate that the listener trusts"
    if listener.http.client_address.proxy_protocol == "required":
        words.append("--haproxy-protocol")
    for name, value in ask.headers:
        words += ["-H", f"{name}: {value}" if value else f"{name};"]
    name = ask.name()
    if name != _LOCAL or address not in _LOOPBACK:
        place = f"[{address}]" if ":" in address else address
        words += ["--resolve", f"{name}:{listener.bind_port}:{place}"]
    where = Address(name, listener.bind_port)
    words.append(f"{ask.scheme}://{where}{ask.target}")
    return shlex.join(words) + more
