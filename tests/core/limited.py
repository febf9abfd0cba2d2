"""A route with rate limits in one World, and the store it asks.

In: limits. Out: clients of a route that has them. Must never: count anything itself.
"""

from __future__ import annotations

from typing import Any

from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.limit_store import HeldStore
from core.world import World
from edgefast import ir

KEY = "6:ns/web3:m=04:test"


def limit(
    requests: int = 1, *, counter: str = KEY, name: str = "ns/limits#0", **settings: Any
) -> ir.RateLimit:
    return ir.RateLimit(name=name, counter=counter, requests=requests, unit=3600, **settings)


def hold(world: World, *, timeout: int = 60_000, fail_closed: bool = False) -> HeldStore:
    store = HeldStore(world.engine.limiter)
    world.engine.limiter.use(store, timeout, fail_closed)
    return store


async def serve(world: World, *limits: ir.RateLimit, **http: Any) -> Client:
    backend = await world.backend(lambda call: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    rule = make_rule(rate_limits=limits)
    port = await world.serve(
        make_fleet(make_listener(**http), make_host(rule), make_cluster(backend.port))
    )
    return await world.client(port)


async def statuses(client: Client, count: int, *headers: tuple[str, str]) -> list[int]:
    return [(await client.ask(make_request(headers=headers))).status for _ in range(count)]
