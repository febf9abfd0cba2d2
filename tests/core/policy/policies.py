"""Routes with policies in one World.

In: units, and what a rule says besides. Out: a client of a route that names them; what the backend was asked. Must never: judge a
request itself.
"""

from __future__ import annotations

from typing import Any

from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir

NAME = "security/ns/p#authorization"
CELLS = "security/ns/p\tauthorization"
TRAFFIC = "traffic/ns/t"


def access(*rules: ir.AccessRule, allow: bool = False, name: str = NAME) -> ir.PolicyUnit:
    """A unit that authorizes."""
    return ir.PolicyUnit(name=name, authorization=ir.Authorization(rules=rules, allow=allow))


def traffic(name: str = TRAFFIC, **settings: int) -> ir.PolicyUnit:
    """A unit that says how requests are treated."""
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(**settings))


async def serve(world: World, *units: ir.PolicyUnit, rule: dict[str, Any], **http: Any) -> Client:
    """A client of one route whose rule says that."""
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    fleet = make_fleet(
        make_listener(**http), make_host(make_rule(**rule)), make_cluster(backend.port), *units
    )
    return await world.client_of(fleet)


async def guarded(world: World, *rules: ir.AccessRule, allow: bool = False, **http: Any) -> Client:
    """A client of a route with one authorization."""
    unit = access(*rules, allow=allow)
    return await serve(world, unit, rule={"policies": (NAME,)}, **http)


async def status(client: Client, path: str = "/", **request: Any) -> int:
    """Of one request."""
    return (await client.ask(make_request(path, **request))).status
