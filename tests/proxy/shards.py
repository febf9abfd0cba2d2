"""Shards for tests that care about resources, not about what is in them.

In: names and contents. Out: `Shards` as compile_fleet makes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast import ir
from edgefast.table import Shards, compile_fleet
from edgefast.table.shards import make_resource


def make_shards(resources: Mapping[tuple[str, str], bytes]) -> Shards:
    """Opaque resources."""
    made = {
        (type_, name): make_resource(type_, name, data) for (type_, name), data in resources.items()
    }
    version = "-".join(f"{type_[0]}{name}{one.version[:4]}" for (type_, name), one in made.items())
    return Shards(made, version)


def make_fleet(
    *ports: int, hosts: int = 1, mark: str = "v1", previous: Shards | None = None
) -> Shards:
    """A real table: listeners on these ports, each with virtual hosts that redirect to `mark`."""
    listeners = tuple(
        ir.Listener(name=f"default/gateway/p{port}", port=port, bind_port=port, protocol="HTTP")
        for port in ports
    )
    rule = ir.Rule(route="default/route", index=0, redirect=ir.Redirect(hostname=f"{mark}.test"))
    entry = ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0)
    names = ["*", *(f"h{number}.test" for number in range(1, hosts))]
    virtual_hosts = tuple(
        ir.VirtualHost(listener=one.name, hostname=name, rules=(rule,), entries=(entry,))
        for one in listeners
        for name in names
    )
    fleet = ir.Fleet(name="standalone", listeners=listeners, virtual_hosts=virtual_hosts)
    return compile_fleet(fleet, previous)


def with_cluster(shards: Shards, name: str, mark: str = "") -> Shards:
    """The same table and one cluster more; its name tells a faulty worker what to do."""
    cluster = ir.Cluster(name=name, endpoints=(ir.Endpoint(address="127.0.0.1", port=1),))
    data = compile_fleet(ir.Fleet(name="x", clusters=(cluster,))).resources["cluster", name].data
    resources = {**shards.resources, ("cluster", name): make_resource("cluster", name, data)}
    return Shards(resources, shards.version + mark + name)
