"""Spans of connections: none unless they are asked for; then one for each connection that is over, of however it ended."""

from __future__ import annotations

import time

import msgspec

from core.stream.streams import (
    LISTENER,
    Place,
    connect,
    is_refused,
    one_cluster,
    stream_fleet,
    stream_listener,
    stream_route,
)
from core.traces import spans_since
from core.world import World
from edgefast import ir
from edgefast.proxy.traces.span_record import ConnectionRecord


def traced(connections: bool = True, sampling: float = 1.0) -> ir.Listener:
    tracing = ir.Tracing(
        endpoint="http://127.0.0.1:4318", sampling=sampling, connections=connections
    )
    return msgspec.structs.replace(stream_listener(), tracing=tracing)


async def talk(world: World, port: int, backend: Place) -> None:
    """A connection of five bytes there and ten back, which both sides end."""
    client = await connect(world, port)
    there = await backend.next()
    await client.send(b"hello")
    client.end()
    assert await there.rest() == b"hello"
    await there.send(b"still here")
    there.end()
    assert await client.rest() == b"still here"
    await world.until(lambda: world.engine.open_connections == 0)


async def serve(world: World, *parts: ir.Listener | ir.StreamRoute) -> tuple[Place, int]:
    backend = await Place().start()
    world.keep(backend)
    world.apply(stream_fleet(one_cluster(backend.port), *parts))
    return backend, await world.listen_stream()


async def test_a_connection_is_told_when_it_is_over(world: World) -> None:
    backend, port = await serve(world, traced())
    before = time.time_ns() // 1000
    await talk(world, port, backend)
    await talk(world, port, backend)
    first, second = spans_since(world, 0)
    assert isinstance(first, ConnectionRecord)
    assert (first.received, first.sent, first.end, first.tries) == (5, 10, b"done", 1)
    assert (first.listener, first.protocol) == (LISTENER.encode(), b"TCP")
    assert (first.route, first.rule) == (b"TCPRoute ns/db", 0)
    assert first.endpoint == f"127.0.0.1:{backend.port}".encode() and first.cluster
    assert first.client == b"127.0.0.1" and first.client_port > 0 and first.server_name == b""
    assert before <= first.start <= second.start <= time.time_ns() // 1000
    assert 0 <= first.connected <= first.took
    assert len(first.trace_id) == 16 and len(first.span_id) == 8
    assert first.trace_id != second.trace_id and first.span_id != second.span_id


async def test_without_being_asked_for_there_are_none(world: World) -> None:
    backend, port = await serve(world, traced(connections=False))
    await talk(world, port, backend)
    world.apply(stream_fleet(one_cluster(backend.port), traced(sampling=0.0)))
    await talk(world, port, backend)
    assert spans_since(world, 0) == []
    world.apply(stream_fleet(one_cluster(backend.port), traced()))  # a listener in force may begin
    await talk(world, port, backend)
    assert len(spans_since(world, 0)) == 1


async def test_who_is_refused_is_told_too(world: World) -> None:
    _, port = await serve(world, traced(), stream_route(ir.StreamBackend(cluster="")))
    assert await is_refused(world, port)
    await world.until(lambda: world.engine.open_connections == 0)
    (span,) = spans_since(world, 0)
    assert (span.end, span.connected, span.tries) == (b"no_backend", -1, 0)
    assert (span.cluster, span.endpoint, span.route) == (b"", b"", b"TCPRoute ns/db")
