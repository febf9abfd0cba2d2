"""Backends that speak HTTP/2 and mean harm, or fail at it: what each costs, and that nobody else pays."""

from __future__ import annotations

import asyncio

import pytest

from core.apart import apart, shift
from core.client import make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener
from core.h2.backend import Ask, H2Backend, say
from core.h2.test_backend import start
from core.h2.test_both import WEBSOCKET
from core.world import World


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame's bytes."""
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


#: name -> what comes instead of an answer on stream 1.
FLOODS = {
    "settings": frame(4, 0, 0, b"\0\x03\0\0\0\x64") * 200,
    "a long settings frame": frame(4, 0, 0, b"\0\x03\0\0\0\x64" * 33),
    "pings": frame(6, 0, 0, b"\0" * 8) * 200,
    "continuations": frame(1, 0, 1, b"\x88") + frame(9, 0, 1, b"\0\x01a\x01b") * 100,
    "empty continuations": frame(1, 0, 1, b"\x88") + frame(9, 0, 1, b"") * 10,
    "a large head": frame(1, 0, 1, b"\x88" + (b"\0\x01a\x7f\x80\x10" + b"x" * 2175) * 7)
    + (frame(9, 0, 1, (b"\0\x01a\x7f\x80\x10" + b"x" * 2175) * 7)) * 30,
    "window updates": frame(8, 0, 0, b"\0\0\0\x01") * 300,
    "a push": frame(5, 4, 1, b"\0\0\0\x02\x82"),
    "data on no stream": frame(0, 0, 0, b"x"),
    "no frames": b"HTTP/1.1 200 OK\r\n\r\n" * 10,
}


@pytest.mark.parametrize("kind", FLOODS)
async def test_floods_end_the_connection(world: World, kind: str) -> None:
    """... and cost the requests on it; the next one has a new connection."""
    floods = True

    def answer(ask: Ask) -> None:
        if floods:
            ask.link.send(FLOODS[kind])
        else:
            ask.reply(b"x")

    backend = H2Backend(answer)
    port = await start(world, backend)
    client = await world.client(port)
    assert (await client.ask(make_request(method="POST", body=b"x"))).status == 502
    await world.until(lambda: backend.links[0].lost)
    if "continuations" in kind or kind in ("a long settings frame", "window updates"):
        assert world.counters["upstream_http2_breaches"] == 1
    floods = False
    assert (await client.get()).body == b"x"
    world.errors.clear()  # hyper-h2 does not like what it was made to say


MALFORMED: dict[str, list[tuple[str, str]]] = {
    "no status": [("x-a", "b")],
    "a status that is none": [(":status", "2000")],
    "101": [(":status", "101")],
    "upper case": [(":status", "200"), ("X-A", "b")],
    "a connection field": [(":status", "200"), ("connection", "close")],
    "a line's end": [(":status", "200"), ("x-a", "b\r\nc: d")],
    "two lengths": [(":status", "200"), ("content-length", "1"), ("content-length", "2")],
    "a pseudo field behind others": [("x-a", "b"), (":status", "200")],
    "a request's pseudo field": [(":status", "200"), (":path", "/")],
}


@pytest.mark.parametrize("kind", MALFORMED)
async def test_malformed_heads_cost_their_stream(world: World, kind: str) -> None:
    def answer(ask: Ask) -> None:
        if ask.value(":path") == "/bad":
            fields = ask.link.frames.encoder.encode(MALFORMED[kind])
            ask.link.send(frame(1, 4, ask.stream, fields))
        else:
            ask.reply(b"x")

    backend = H2Backend(answer)
    port = await start(world, backend)
    client = await world.client(port)
    assert (await client.get("/bad")).status == 502
    assert (await client.get()).body == b"x"
    assert len(backend.links) == 1
    assert world.counters["upstream_protocol_errors"] == 1


@pytest.mark.parametrize("body", [b"short", b"longer than it says"])
async def test_bodies_of_another_length(world: World, body: bytes) -> None:
    def answer(ask: Ask) -> None:
        ask.head(200, ("content-length", "10"))
        ask.data(body, end=True)

    backend = H2Backend(answer)
    port = await start(world, backend)
    client = await world.client(port)
    await client.send(make_request())
    raw = b""
    try:
        while data := await client.receive():
            raw += data
    except ConnectionResetError:
        pass
    assert len(raw.partition(b"\r\n\r\n")[2]) < 10
    assert world.counters["upstream_protocol_errors"] == 1


async def test_goaway_on_every_connection(world: World) -> None:
    """A request is tried a few times, and fails: it is not tried for ever."""
    backend = H2Backend(begun=lambda ask: ask.link.goes_away(last=0))
    port = await start(world, backend)
    assert (await (await world.client(port)).get()).status == 502
    assert len(backend.asks) <= 4


async def test_no_streams_at_all(world: World) -> None:
    """Nobody waits for longer than for a connection."""
    backend = H2Backend(streams=0)
    port = await start(world, backend, connect_timeout=200)
    assert (await (await world.client(port)).get()).status == 503
    assert world.counters["upstream_connect_failures"] >= 1


async def speak(world: World, words: bytes) -> int:
    """A backend that says this on each connection, and ends it; the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        writer.write_eof()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    world.keep(server)
    return int(server.sockets[0].getsockname()[1])


#: What a backend says before it ends: nothing, or that it takes no request.
FAREWELLS = {
    "nothing": b"",
    "goaway": frame(4, 0, 0, b"") + frame(7, 0, 0, b"\0" * 8),
    "goaway and no streams": frame(4, 0, 0, b"\0\x03\0\0\0\0") + frame(7, 0, 0, b"\0" * 8),
}


@pytest.mark.parametrize("kind", FAREWELLS)
async def test_an_end_before_any_request(world: World, kind: str) -> None:
    """It is no connection: whoever waits for it hears of it, and goes on to another endpoint."""
    gone = await speak(world, FAREWELLS[kind])
    port = await world.serve(make_fleet(make_listener(), make_cluster(gone, protocol="h2")))
    clients = [await world.client(port) for _ in range(3)]
    answers = await asyncio.gather(*(client.get() for client in clients))
    assert {answer.status for answer in answers} == {503}
    assert 1 <= world.counters["upstream_connects"] <= 3
    assert world.counters["upstream_connect_failures"] == world.counters["upstream_connects"]
    backend = H2Backend(say(b"x"))
    world.keep(await backend.start())
    world.apply(make_fleet(make_listener(), make_cluster(gone, backend.port, protocol="h2")))
    answers = await asyncio.gather(*(client.get() for client in clients))
    assert [answer.body for answer in answers] == [b"x"] * 3


async def test_silence(world: World) -> None:
    """One that accepts and says nothing has not been connected to."""
    backend = H2Backend(silent=True)
    port = await start(world, backend, connect_timeout=200)
    clients = [await world.client(port) for _ in range(5)]
    answers = await asyncio.gather(*(client.get() for client in clients))
    assert {answer.status for answer in answers} == {503}


async def test_full_connections_and_who_waits(world: World) -> None:
    """At the cluster's bound requests wait for a stream, and get one."""
    backend = H2Backend(streams=2)
    world.keep(await backend.start())
    cluster = make_cluster(backend.port, protocol="h2", max_connections=2)
    port = await world.serve(make_fleet(make_listener(), cluster))
    clients = [await world.client(port) for _ in range(10)]
    for client in clients:
        await client.send(make_request())
    await world.until(lambda: len(backend.asks) == 4)
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 6)
    for _ in clients:
        (await backend.ask()).reply(b"x")
    for client in clients:
        assert (await client.response()).status == 200
    assert len(backend.links) == 2


@apart(clock=True)
async def test_idle_connections_end(world: World) -> None:
    backend = H2Backend(say(b"x"))
    port = await start(world, backend, upstream_idle=5000)
    client = await world.client(port)
    assert (await client.get()).status == 200
    shift(6)
    await world.until(lambda: backend.links[0].lost)
    assert backend.links[0].goaway == 0


@apart(clock=True)
async def test_the_end_of_a_tunnel_into_a_shut_window(world: World) -> None:
    """Its client is gone, and nobody else would end it."""
    backend = H2Backend(connects=True, window=1)
    port = await start(world, backend, stream_idle_timeout=5000)
    client = await world.client(port)
    await client.send(make_request("/chat", headers=WEBSOCKET))
    ask = await backend.ask()
    ask.link.takes = False
    ask.head(200)
    assert (await client.response()).status == 101
    await client.send(b"x")
    await world.until(lambda: ask.body == b"x")
    client.close()
    await world.until(lambda: world.counters["requests_active"] == 0)
    assert (ask.ended, ask.reset) == (False, None)
    shift(6)
    await world.until(lambda: ask.reset is not None)
    assert (ask.ended, ask.reset) == (False, 8)
    await world.until(lambda: world.cluster(CLUSTER)["endpoints"][0]["streams"] == 0)
