"""Small fleets in few words, for tests of the engine.

In: ports of backends, rules, settings. Out: ir objects. Everything is on one listener and one host unless a test says so.
Must never: hide a setting that a test is about.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgefast import ir
from edgefast.table import Resource, compile_fleet, diff

LISTENER = "ns/gw/http"
PORT = 8080
CLUSTER = "service/ns/web/80"
ROW = "ns/web\t0"  # the counters of make_rule()


def make_listener(
    name: str = LISTENER,
    *,
    port: int = PORT,
    hostname: str = "*",
    log: ir.AccessLog | None = None,
    protocol: ir.Protocol = "HTTP",
    addresses: tuple[str, ...] = (),
    **http: Any,
) -> ir.Listener:
    """A listener; `http` are fields of ir.HttpSettings. Connecting has time: the loop is also the backends' and the clients'."""
    http = {"connect_timeout": 30_000, **http}
    return ir.Listener(
        name=name,
        port=port,
        bind_port=port,
        protocol=protocol,
        hostname=hostname,
        http=ir.HttpSettings(**http),
        access_log=log or ir.AccessLog(),
        addresses=addresses,
    )


def make_cluster(*ports: int, name: str = CLUSTER, **settings: Any) -> ir.Cluster:
    """A cluster of loopback ports."""
    endpoints = tuple(ir.Endpoint(address="127.0.0.1", port=port) for port in ports)
    return ir.Cluster(name=name, endpoints=endpoints, **settings)


def make_rule(*backends: str | ir.BackendRef, route: str = "ns/web", **settings: Any) -> ir.Rule:
    """A rule; backends are cluster names (weight 1) or refs. None: the usual cluster."""
    refs = tuple(
        ir.BackendRef(cluster=one) if isinstance(one, str) else one
        for one in backends or (CLUSTER,)
    )
    return ir.Rule(route=route, index=0, backends=refs, **settings)


def make_host(
    *rules: ir.Rule | tuple[str, ir.Rule], hostname: str = "*", listener: str = LISTENER
) -> ir.VirtualHost:
    """A virtual host; a rule alone takes every path, (prefix, rule) takes that one."""
    pairs = [one if isinstance(one, tuple) else ("", one) for one in rules]
    order = sorted(range(len(pairs)), key=lambda i: (-len(pairs[i][0]), i))
    return ir.VirtualHost(
        listener=listener,
        hostname=hostname,
        rules=tuple(one for _, one in pairs),
        entries=tuple(
            ir.Entry(match=ir.Match(kind="prefix", path=pairs[i][0]), rule=i) for i in order
        ),
    )


def make_fleet(
    *parts: ir.Listener | ir.VirtualHost | ir.Cluster | ir.Rule | ir.PolicyUnit,
) -> ir.Fleet:
    """A fleet of these parts. Without a listener it has the usual one; rules alone make one host."""
    listeners = tuple(one for one in parts if isinstance(one, ir.Listener))
    hosts = tuple(one for one in parts if isinstance(one, ir.VirtualHost))
    rules = tuple(one for one in parts if isinstance(one, ir.Rule))
    clusters = tuple(one for one in parts if isinstance(one, ir.Cluster))
    if rules:
        hosts += (make_host(*rules),)
    if clusters and not hosts:
        hosts = (make_host(make_rule()),)
    return ir.Fleet(
        name="standalone",
        listeners=listeners or (make_listener(),),
        virtual_hosts=hosts,
        clusters=clusters,
        policies=tuple(one for one in parts if isinstance(one, ir.PolicyUnit)),
    )


def encode(item: msgspec.Struct) -> bytes:
    """The bytes of a listener or cluster as they lie in the arena."""
    return msgspec.msgpack.encode(item)


def all_resources(fleet: ir.Fleet) -> list[Resource]:
    """What a worker that has nothing is sent, in that order."""
    return list(diff(None, compile_fleet(fleet)).put)
