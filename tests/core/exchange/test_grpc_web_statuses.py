"""Answers to gRPC-Web whose status is not gRPC's own 200: none of their bytes is the next answer (RFC 9112 6.3)."""

from __future__ import annotations

from typing import Any

import pytest

from core.apart import apart, shift
from core.backend import Backend
from core.client import Client, make_request
from core.exchange.test_grpc_web import HELLO, KIND, TEXT, WEB, request, start
from core.fleets import make_cluster, make_fleet, make_listener
from core.h2.asking import Asker
from core.h2.backend import Ask, H2Backend
from core.world import World
from edgefast import ir

STATUSES = [204, 205, 304, 404, 503]
EVIL = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nEVIL"
FIELDS = (KIND, ("grpc-status", "5"), ("grpc-message", "%0d%0aHTTP/1.1 200"))
CALL = [
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/a.B/C"),
    (b":authority", b"test"),
    (b"content-type", WEB.encode()),
]


async def serve(world: World, backend: H2Backend) -> int:
    world.keep(await backend.start())
    listener = make_listener(grpc=ir.GrpcSettings(web=True), http2=ir.Http2Settings(enabled=True))
    return await world.serve(make_fleet(listener, make_cluster(backend.port, protocol="h2")))


def whole(status: int) -> H2Backend:
    """Calls end with that status and a head; other requests get `next`."""

    def answer(ask: Ask) -> None:
        if ask.value(":method") == "POST":
            ask.head(status, *FIELDS, end=True)
        else:
            ask.reply(b"next")

    return H2Backend(answer)


@pytest.mark.parametrize("kind", [WEB, TEXT])
@pytest.mark.parametrize("status", STATUSES)
async def test_a_head_over_http1(world: World, status: int, kind: str) -> None:
    """It goes on as it is, and the connection with it."""
    client = await world.client(await serve(world, whole(status)))
    await client.send(request(kind, b"") + make_request("/next"))
    answer = await client.response()
    assert (answer.status, answer.body, answer.value("content-type")) == (status, b"", KIND[1])
    assert answer.value("transfer-encoding") is None
    assert answer.value("grpc-status") == "5"
    assert (await client.response()).body == b"next"


@pytest.mark.parametrize("status", STATUSES)
async def test_a_head_over_http2(world: World, status: int) -> None:
    asker = Asker(await world.client(await serve(world, whole(status))))
    answer = await asker.ask(CALL, HELLO)
    assert (answer.status, answer.body, answer.value("content-type")) == (status, b"", KIND[1])
    assert answer.value("grpc-status") == "5"


def longer(status: int) -> H2Backend:
    """The same with bytes behind it that would be an answer of their own."""

    def answer(ask: Ask) -> None:
        ask.head(status, KIND)
        ask.data(EVIL)
        ask.trail(("grpc-status", "0"))

    return H2Backend(answer)


@pytest.mark.parametrize("status", [204, 304])
async def test_bytes_behind_a_head_that_ends(world: World, status: int) -> None:
    """They are nobody's: a stream ends with its head, a connection of HTTP/1.1 behind it."""
    port = await serve(world, longer(status))
    client = await world.client(port)
    await client.send(request(WEB, HELLO))
    received = b""
    while piece := await client.receive():
        received += piece
    assert b"EVIL" not in received and b"chunked" not in received
    answer = await Asker(await world.client(port)).ask(CALL, HELLO)
    assert (answer.status, answer.body) == (status, b"")


@pytest.mark.parametrize("status", [205, 503])
async def test_bytes_behind_a_head_that_has_a_body(world: World, status: int) -> None:
    """As they come: neither text nor a frame of trailers is made of them."""
    port = await serve(world, longer(status))
    client = await world.client(port)
    for _ in range(2):
        answer = await client.ask(request(TEXT, b""))
        assert (answer.status, answer.body) == (status, EVIL)
        assert answer.value("content-type") == KIND[1]
    answer = await Asker(await world.client(port)).ask(CALL, HELLO)
    assert (answer.status, answer.body) == (status, EVIL)


async def over_http1(world: World, **http: Any) -> tuple[Backend, Client]:
    """A backend of HTTP/1.1 behind a port that translates."""
    backend = Backend()
    world.keep(await backend.start())
    listener = make_listener(grpc=ir.GrpcSettings(web=True), **http)
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    return backend, await world.client(port)


@pytest.mark.parametrize("status", [204, 304])
async def test_a_backend_of_http1(world: World, status: int) -> None:
    backend, client = await over_http1(world)
    for _ in range(2):
        await client.send(request(WEB, HELLO))
        call = await backend.call()
        call.send(f"HTTP/1.1 {status} X\r\ncontent-type: application/grpc\r\n\r\n".encode())
        answer = await client.response()
        assert (answer.status, answer.value("transfer-encoding")) == (status, None)


async def test_a_tunnel(world: World) -> None:
    """What a backend calls gRPC behind 101 is the tunnel's."""
    backend, client = await over_http1(world)
    head = f"content-type: {TEXT}\r\nconnection: upgrade\r\nupgrade: x".encode()
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\n" + head + b"\r\n\r\n")
    call = await backend.call()
    call.send(
        b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n"
        b"content-type: application/grpc\r\n\r\nraw"
    )
    received = b""
    while not received.endswith(b"raw"):
        received += await client.receive()
    assert received.endswith(b"\r\n\r\nraw") and b"chunked" not in received


@apart(clock=True)
async def test_a_timeout_behind_one(world: World) -> None:
    """A frame of trailers would be a part of what is not gRPC-Web: the client hears that it is cut."""
    backend, client = await start(world, None)
    await client.send(request(WEB, HELLO).replace(b"x-grpc-web: 1", b"grpc-timeout: 10S"))
    ask = await backend.ask()
    ask.head(503, KIND)
    ask.data(b"one")
    received = b""
    while not received.endswith(b"one\r\n"):
        received += await client.receive()
    shift(11)
    assert await client.receive() == b"", "no last chunk"
