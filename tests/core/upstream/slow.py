"""A site whose backend has few connections, and clients that send their bodies slowly.

In: a world and a backend. Out: requests that have begun, and what is held for them. Must never end one by itself.
"""

from __future__ import annotations

from typing import Any

from core.backend import Backend
from core.client import Client
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener
from core.world import World

HEAD = b"POST /slow HTTP/1.1\r\nhost: test\r\ncontent-length: %d\r\n\r\n"
STREAM = b"POST /stream HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
LATE = 120_000  # ms: longer than any test


async def open_site(world: World, backend: Backend, most: int, **http: Any) -> int:
    """A route to a cluster of so many connections."""
    cluster = make_cluster(backend.port, max_connections=most, max_pending=4)
    return await world.serve(make_fleet(make_listener(**http), cluster))


async def post(
    world: World, port: int, data: bytes = HEAD % 100_000 + b"x", **settings: Any
) -> Client:
    """Begin a request; `settings` of its client."""
    client = await world.client(port, **settings)
    before = world.counters["downstream_bytes_received"]
    await client.send(data)
    await world.until(
        lambda: world.counters["downstream_bytes_received"] >= before + len(data), "it was read"
    )
    return client


def held(world: World) -> int:
    return int(world.cluster(CLUSTER)["bodies"])


async def give(world: World, client: Client, data: bytes) -> None:
    """Send more of a request, and wait until it was read."""
    before = world.counters["downstream_bytes_received"]
    await client.send(data)
    await world.until(
        lambda: world.counters["downstream_bytes_received"] >= before + len(data), "it was read"
    )
