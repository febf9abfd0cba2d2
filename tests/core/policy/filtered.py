"""A listener whose filters ask a service, in one World.

In: what the service answers, hosts, units beside the usual one, fields of ir.ExtAuth. Out: the service, a port, what the backend got.
Must never: let a request pass by itself.
"""

from __future__ import annotations

from typing import Any

from core.backend import Backend, Call, make_response
from core.client import Client, make_request
from core.fleets import LISTENER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.authorized import AUTH, FILTER, make_auth, make_unit, with_filters
from core.world import World
from edgefast import ir

SECOND = "listener/ns/gw/http#filters.requests[1]"
INNER = "service/ns/inner/80"


class Filtered:
    """A listener that asks a service, with what is behind it."""

    def __init__(self, world: World, service: Backend, port: int) -> None:
        self.world = world
        self.service = service
        self.port = port
        self.seen: list[Call] = []
        self.backend = 0

    async def client(self) -> Client:
        """A new connection."""
        return await self.world.client(self.port)

    async def status(self, path: str = "/", **request: Any) -> int:
        """Of a request on a connection of its own."""
        head = request.get("method") == "HEAD"
        return (await (await self.client()).ask(make_request(path, **request), head=head)).status


async def filtered(
    world: World,
    answer: Any = None,
    *hosts: ir.VirtualHost,
    units: tuple[ir.PolicyUnit, ...] = (),
    names: tuple[str, ...] = (FILTER,),
    clusters: tuple[ir.Cluster, ...] = (),
    http: dict[str, Any] | None = None,
    **asked: Any,
) -> Filtered:
    """Serve it; without hosts there is one with a rule for all."""
    service, backend = await world.backend(answer), await world.backend()
    made = Filtered(world, service, 0)

    def keep(call: Call) -> bytes:
        made.seen.append(call)
        return make_response(b"behind")

    backend.answer = keep
    made.backend = backend.port
    made.port = await world.serve(
        make_fleet(
            with_filters(make_listener(**(http or {})), *names),
            *(hosts or (make_host(make_rule()),)),
            make_cluster(backend.port),
            make_cluster(service.port, name=AUTH),
            *clusters,
            make_unit(make_auth(**asked), FILTER),
            *units,
        )
    )
    return made


def by_tenant() -> ir.VirtualHost:
    """A rule for tenant "one", and one for all."""
    tenant = ir.ValueMatch(name="x-tenant", value="one")
    return ir.VirtualHost(
        listener=LISTENER,
        hostname="*",
        rules=(make_rule(), make_rule(status=418)),
        entries=(
            ir.Entry(match=ir.Match(kind="prefix", path="", headers=(tenant,)), rule=0),
            ir.Entry(match=ir.Match(kind="prefix", path=""), rule=1),
        ),
    )
