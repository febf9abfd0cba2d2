"""Tables to look at: fleets of the IR as the compiler makes them, in any size."""

from __future__ import annotations

from collections.abc import Sequence

from edgefast import ir
from edgefast.console.index import Index
from edgefast.console.live_metrics import Meter
from edgefast.console.problem_index import ProblemIndex
from edgefast.console.source import Table
from edgefast.console.state import State
from edgefast.diagnostics.problem import Problem
from edgefast.table import Shards, compile_fleet

LISTENER = "default/edge/http"


def make_rule(number: int, **more: object) -> ir.Rule:
    """A rule of a route of its own."""
    backends = (ir.BackendRef(cluster=f"service/default/s{number}/80"),)
    return ir.Rule(
        route=f"default/r{number}",
        index=0,
        **{"source": f"a.yaml:{number}", "backends": backends, **more},  # type: ignore[arg-type]
    )


def make_host(hostname: str, rules: Sequence[ir.Rule], listener: str = LISTENER) -> ir.VirtualHost:
    """A host whose rules take a path each, longest names first."""
    return ir.VirtualHost(
        listener=listener,
        hostname=hostname,
        rules=tuple(rules),
        entries=tuple(
            ir.Entry(ir.Match("prefix", f"/{rule.route.rpartition('/')[2]}"), number)
            for number, rule in enumerate(rules)
        ),
    )


def make_fleet(hosts: Sequence[ir.VirtualHost], *listeners: ir.Listener) -> ir.Fleet:
    """A fleet of hosts, with the clusters that they name."""
    names = {share.cluster for host in hosts for rule in host.rules for share in rule.backends} - {
        ""
    }
    endpoint = ir.Endpoint(address="127.0.0.1", port=3000)
    return ir.Fleet(
        name="standalone",
        listeners=listeners
        or (ir.Listener(name=LISTENER, port=80, bind_port=80, protocol="HTTP"),),
        virtual_hosts=tuple(hosts),
        clusters=tuple(ir.Cluster(name, (endpoint,)) for name in sorted(names)),
    )


def spread(rules: int, hosts: int = 1) -> ir.Fleet:
    """A fleet of so many rules on so many hosts."""
    made: list[list[ir.Rule]] = [[] for _ in range(hosts)]
    for number in range(rules):
        made[number % hosts].append(make_rule(number))
    return make_fleet(
        [make_host(f"h{number}.example.com", found) for number, found in enumerate(made)]
    )


def look_at(fleet: ir.Fleet, problems: Sequence[Problem] = (), meter: Meter | None = None) -> State:
    """Return a state of a fleet."""
    shards: Shards = compile_fleet(fleet)
    index = Index(fleet)
    window = (meter or Meter((1.0, 10.0))).window
    table = Table(
        state=(shards.version,),
        version=shards.version,
        accepted=1.0,
        resources=shards.resources,
        fleet=fleet,
    )
    return State("standalone", table, index, ProblemIndex(index, problems), window)
