"""Fleet pair: one fleet before and after, and the requests to compare.

In: the served tables of both sides. Out: which hostnames differ; hosts and requests for them.
Must never: take two tables for equal that answer one request differently.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from edgefast import ir
from edgefast.diagnostics.redact import show, show_query
from edgefast.explain.changes import Example
from edgefast.explain.example_request import ExampleRequest
from edgefast.explain.request_spec import STREAMS, RequestSpec
from edgefast.explain.served_fleet import Served
from edgefast.netaddr import parse_network
from edgefast.table.match import find_listener, order_hostnames

#: Hosts for a wildcard or for any host: the first that no table names.
_LABELS = ("any", "other", "example", "probe")
_TLDS = ("example", "test", "invalid")
_HERE = "127.0.0.1"
#: What every host is asked.
ROOT = ExampleRequest("GET", "/", ())


class Pair:
    """The same fleet before and after."""

    def __init__(self, old: Served, new: Served) -> None:
        self.old = old
        self.new = new
        self.examples = 0
        self.by_cluster: dict[str, RequestSpec] = {}  # an example that goes there, before or after
        self._moved = {
            name
            for name in old.clusters.keys() | new.clusters.keys()
            if old.clusters.get(name) != new.clusters.get(name)
        }
        self._moved |= {
            name
            for name in old.policies.keys() | new.policies.keys()
            if _differs(old, new, name, self._moved)
        }
        self._same: dict[tuple[str, str], bool] = {}

    def sides(self) -> tuple[Served, Served]:
        """Return before and after."""
        return self.old, self.new

    def is_same(self, port: int, host: str, address: str = "") -> bool:
        """Tell whether a host's requests meet equal tables."""
        owners = [find_listener(side.listeners(port, address), port, host) for side in self.sides()]
        if owners[0] is None or owners[1] is None or _facade(owners[0]) != _facade(owners[1]):
            return owners[0] is owners[1]
        if not self._moved.isdisjoint(owners[0].filters):
            return False
        return all(self._is_same_host(owners[0].name, name) for name in order_hostnames(host))

    def _is_same_host(self, listener: str, hostname: str) -> bool:
        key = (listener, hostname)
        if key not in self._same:
            old, new = (side.hosts.get(listener, {}).get(hostname) for side in self.sides())
            self._same[key] = old == new and (old is None or not self._moved & _names(old))
        return self._same[key]


def _facade(one: ir.Listener) -> tuple[object, ...]:
    return one.name, one.hostname, one.protocol, one.http, one.filters


def _differs(old: Served, new: Served, name: str, moved: set[str]) -> bool:
    """Tell whether a unit says something else, or asks a service that has other endpoints."""
    before, after = old.policies.get(name), new.policies.get(name)
    return before != after or (after is not None and bool(moved & _was_requested(after.ext_auth)))


def _was_requested(requested: ir.ExtAuth | None) -> set[str]:
    return {one.cluster for one in requested.backends} if requested is not None else set()


def _names(host: ir.VirtualHost) -> set[str]:
    """Return the clusters and units of policies that a host's rules name."""
    found = {share.cluster for rule in host.rules for share in rule.backends}
    for rule in host.rules:
        found.update(rule.units(), _was_requested(rule.ext_auth))
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


def make_request_spec(
    pair: Pair, port: int, host: str, example: ExampleRequest, address: str = ""
) -> RequestSpec:
    """Return an example request as a request to a port."""
    listeners = pair.old.listeners(port, address) or pair.new.listeners(port, address)
    scheme = "https" if listeners and listeners[0].protocol == "HTTPS" else "http"
    default = port == (443 if scheme == "https" else 80)
    source, headers = _come_from(listeners, example)
    return RequestSpec(
        method=example.method,
        scheme=scheme,
        port=port,
        host=host if default else f"{host}:{port}",
        target=example.target,
        headers=headers,
        source=source,
        sni=host if scheme == "https" else "",
        address=address,
    )


def _come_from(
    listeners: Sequence[ir.Listener], example: ExampleRequest
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the peer address and the headers that give an example request its client address."""
    if not example.source:
        return _HERE, example.headers
    address = listeners[0].http.client_address if listeners else ir.ClientAddress()
    if not address.trusted_hops:
        return example.source, example.headers
    peer = str(parse_network(address.trusted_cidrs[0])[0]) if address.trusted_cidrs else _HERE
    reported = ", ".join((example.source, *[peer] * (address.trusted_hops - 1)))
    return peer, (*example.headers, ("x-forwarded-for", reported))


def make_example(request: RequestSpec) -> Example:
    """Return an example for people: whoever has the credentials that it takes puts them in."""
    return Example(
        method="" if request.scheme in STREAMS else request.method,
        url=show_query(request.url()),
        headers=tuple((name, show(name, value)) for name, value in request.headers),
        source="" if request.source == _HERE else request.source,
        address=request.address,
        http10=request.http10,
    )
