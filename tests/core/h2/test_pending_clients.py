"""Requests of HTTP/2 that wait for a connection to a backend: all streams of an address have one turn, whatever connections they came on."""

from __future__ import annotations

from h2.config import H2Configuration
from h2.connection import H2Connection

from core.client import Client
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener
from core.upstream.test_pending_clients import order
from core.world import World
from edgefast import ir

OTHER = "127.0.0.2"


async def ask(world: World, port: int, source: str, *paths: str) -> Client:
    """A connection with these requests."""
    client = await world.client(port, source=source)
    frames = H2Connection(H2Configuration(header_encoding="utf-8"))
    frames.initiate_connection()
    head = [(":method", "GET"), (":scheme", "http"), (":authority", "test")]
    for number, path in enumerate(paths):
        frames.send_headers(1 + 2 * number, [*head, (":path", path)], end_stream=True)
    await client.send(frames.data_to_send())
    return client


async def wait(world: World, port: int, source: str, *paths: str) -> None:
    """The same, of requests that wait."""
    before = world.cluster(CLUSTER)["pending"]
    await ask(world, port, source, *paths)
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == before + len(paths))


async def test_streams_of_a_connection_are_one_client(world: World) -> None:
    backend = await world.backend()
    listener = make_listener(http2=ir.Http2Settings(enabled=True))
    port = await world.serve(make_fleet(listener, make_cluster(backend.port, max_connections=1)))
    await ask(world, port, "127.0.0.1", "/holder")
    call = await backend.call()
    await wait(world, port, "127.0.0.1", *(f"/{number}" for number in range(20)))
    await wait(world, port, "127.0.0.1", "/more")
    await wait(world, port, OTHER, "/other0", "/other1")
    paths = await order(backend, call, 23)
    assert paths[:4] == ["/0", "/other0", "/1", "/other1"]
    assert paths[4:] == [*(f"/{number}" for number in range(2, 20)), "/more"]
