"""HTTP/2 on both sides, and tunnels towards backends that take them."""

from __future__ import annotations

import base64
import hashlib

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded, TrailersReceived

from core.client import Client, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener
from core.h2.backend import Ask, H2Backend
from core.h2.test_backend import start
from core.world import World
from edgefast import ir

HEAD = [(":method", "POST"), (":scheme", "http"), (":path", "/a.B/C"), (":authority", "test")]


async def serve(world: World, backend: H2Backend) -> int:
    world.keep(await backend.start())
    listener = make_listener(http2=ir.Http2Settings(enabled=True))
    return await world.serve(make_fleet(listener, make_cluster(backend.port, protocol="h2")))


async def events(
    client: Client, frames: H2Connection, until: type[Event], count: int = 1
) -> list[Event]:
    """What comes until so many events of a kind have."""
    found: list[Event] = []
    while sum(isinstance(one, until) for one in found) < count:
        data = await client.receive()
        assert data, found
        found += frames.receive_data(data)
        await client.send(frames.data_to_send())
    return found


async def begin(world: World, port: int) -> tuple[Client, H2Connection]:
    client = await world.client(port)
    frames = H2Connection(H2Configuration(header_encoding="utf-8"))
    frames.initiate_connection()
    return client, frames


async def test_bodies_and_trailers_both_ways(world: World) -> None:
    def answer(ask: Ask) -> None:
        ask.head(200, ("content-type", "application/grpc"))
        ask.data(ask.body)
        ask.trail(("grpc-status", "0"))

    backend = H2Backend(answer)
    client, frames = await begin(world, await serve(world, backend))
    for stream in (1, 3, 5):
        frames.send_headers(stream, [*HEAD, ("te", "trailers")])
        frames.send_data(stream, b"\0\0\0\0\1x")
        frames.send_headers(stream, [("x-sum", "1")], end_stream=True)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded, 3)
    assert [one.data for one in found if isinstance(one, DataReceived)] == [b"\0\0\0\0\1x"] * 3
    trailers = [one.headers for one in found if isinstance(one, TrailersReceived)]
    assert [list(one or ()) for one in trailers] == [[("grpc-status", "0")]] * 3
    assert len(backend.links) == 1
    for ask in backend.asks:
        assert ask.value("te") == "trailers"
        assert ask.trailers == [("x-sum", "1")]


async def test_an_answer_that_is_its_head_stays_one(world: World) -> None:
    """Trailers alone: what gRPC has for a call that failed."""
    backend = H2Backend(lambda ask: ask.head(200, ("grpc-status", "5"), end=True))
    client, frames = await begin(world, await serve(world, backend))
    frames.send_headers(1, HEAD, end_stream=True)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded)
    (head,) = [one for one in found if isinstance(one, ResponseReceived)]
    assert head.stream_ended is not None
    assert ("grpc-status", "5") in (head.headers or ())
    assert not [one for one in found if isinstance(one, DataReceived)]


async def test_trailers_behind_no_body(world: World) -> None:
    """An empty body that says its length has trailers behind it all the same; an HTTP/1.1 client gets the answer without them."""

    def answer(ask: Ask) -> None:
        ask.head(200, ("content-length", "0"))
        ask.trail(("x-sum", "0"))

    backend = H2Backend(answer)
    port = await serve(world, backend)
    client, frames = await begin(world, port)
    frames.send_headers(1, HEAD, end_stream=True)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded)
    (trailers,) = [one.headers for one in found if isinstance(one, TrailersReceived)]
    assert list(trailers or ()) == [("x-sum", "0")]
    old = await world.client(port)
    for _ in range(2):
        got = await old.ask(make_request())
        assert (got.status, got.value("content-length"), got.body) == (200, "0", b"")


KEY = "dGhlIHNhbXBsZSBub25jZQ=="
WEBSOCKET = [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-key", KEY)]


async def test_a_websocket_to_a_backend_that_takes_them(world: World) -> None:
    backend = H2Backend(connects=True)
    port = await start(world, backend)
    client = await world.client(port)
    await client.send(make_request("/chat", headers=WEBSOCKET))
    ask = await backend.ask()
    assert (ask.value(":method"), ask.value(":protocol")) == ("CONNECT", "websocket")
    assert (ask.value(":path"), ask.value("sec-websocket-key")) == ("/chat", None)
    ask.head(200)
    answer = await client.response()
    assert (answer.status, answer.value("upgrade")) == (101, "websocket")
    digest = hashlib.sha1(KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    assert answer.value("sec-websocket-accept") == base64.b64encode(digest).decode()
    await client.send(b"ping")
    await world.until(lambda: ask.body == b"ping")
    ask.data(b"pong")
    assert await client.receive() == b"pong"
    client.close()
    await world.until(lambda: ask.ended or ask.reset is not None)
    await world.until(lambda: world.cluster(CLUSTER)["endpoints"][0]["streams"] == 0)


async def test_a_websocket_to_a_backend_that_does_not(world: World) -> None:
    backend = H2Backend()
    port = await start(world, backend)
    client = await world.client(port)
    for _ in range(3):
        assert (await client.ask(make_request("/chat", headers=WEBSOCKET))).status == 502
        client.close()
        client = await world.client(port)
    assert backend.asks == []
    assert len(backend.links) == 1
