"""Tables with one UDP listener.

In: ports. Out: what an agent publishes; `mark` makes two of them differ.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.table import Shards, compile_fleet

LISTENER = "default/gateway/dns"


def make_tables(port: int, *backends: int, mark: str = "", web: bool = False) -> Shards:
    """A UDP listener whose datagrams go to these loopback ports, and one of HTTP on the same port number."""
    listeners = [ir.Listener(name=LISTENER, port=port, bind_port=port, protocol="UDP")]
    hosts: tuple[ir.VirtualHost, ...] = ()
    if web:
        name = "default/gateway/web"
        rule = ir.Rule(route="default/r", index=0, redirect=ir.Redirect(hostname="v1.test"))
        entry = ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0)
        listeners.append(ir.Listener(name=name, port=port, bind_port=port, protocol="HTTP"))
        hosts = (ir.VirtualHost(listener=name, hostname="*", rules=(rule,), entries=(entry,)),)
    share = ir.StreamBackend(cluster="c/udp")
    endpoints = tuple(ir.Endpoint(address="127.0.0.1", port=one) for one in backends)
    route = ir.StreamRoute(listener=LISTENER, hostname="*", source=mark, backends=(share,))
    return compile_fleet(
        ir.Fleet(
            name="standalone",
            listeners=tuple(listeners),
            virtual_hosts=hosts,
            stream_routes=(route,),
            clusters=(ir.Cluster(name="c/udp", endpoints=endpoints),),
        )
    )
