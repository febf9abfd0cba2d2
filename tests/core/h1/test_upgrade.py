"""101 and 204: what begins a tunnel, and what has no length."""

from __future__ import annotations

import socket

import pytest

from core.client import make_request
from core.fleets import make_cluster, make_fleet
from core.world import World

SWITCH = b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def ask_for(protocols: str) -> bytes:
    return make_request(headers=(("connection", "upgrade"), ("upgrade", protocols)))


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("websocket", b"websocket"),
        ("websocket", b"WebSocket"),
        ("a/1, b", b"b"),
        ("a/1, b", b"b , A/1"),
        ("a/1, b", b"a/1\r\nupgrade: b"),
    ],
)
async def test_a_backend_switches_to_what_was_asked_for(
    asked: str, named: bytes, world: World
) -> None:
    backend, client = await world.pair()
    await client.send(ask_for(asked))
    call = await backend.call()
    assert call.message.value(b"upgrade") == asked.encode()
    call.send(SWITCH + b"content-length: 5\r\nupgrade: " + named + b"\r\n\r\n")
    answer = await client.response()
    assert answer.status == 101
    assert [name for name, _ in answer.headers if name == "content-length"] == []
    await client.send(b"both ways")
    await world.until(lambda: call.link.received.endswith(b"both ways"))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("websocket", SWITCH + b"\r\n"),
        ("websocket", SWITCH + b"upgrade: \r\n\r\n"),
        ("websocket", SWITCH + b"upgrade: other\r\n\r\n"),
        ("websocket", SWITCH + b"upgrade: websocket, other\r\n\r\n"),
        ("websocket", SWITCH + b"upgrade: websocket\r\nupgrade: other\r\n\r\n"),
        ("websocket", SWITCH + b"upgrade: websocket/13\r\n\r\n"),
        ("websocket", SWITCH.replace(b"1.1", b"1.0") + b"upgrade: websocket\r\n\r\n"),
        ("", SWITCH + b"upgrade: websocket\r\n\r\n"),
        ("h2c", SWITCH + b"upgrade: h2c\r\n\r\n"),
    ],
)
async def test_a_backend_that_switches_to_anything_else_is_broken(
    asked: str, answer: bytes, world: World
) -> None:
    """502, and nothing goes through: not what it sent behind its 101, and not the client's next request."""
    backend, client = await world.pair()
    await client.send(ask_for(asked) if asked else make_request())
    (await backend.call()).send(answer + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison")
    assert (await client.response()).status == 502
    assert world.counters["upstream_protocol_errors"] == 1
    assert world.counters["tunnels_active"] == 0
    await world.until(lambda: backend.open == [], "that connection is not used again")
    await client.send(make_request())
    (await backend.call()).send(PLAIN)
    assert (await client.response()).body == b"ok"


@pytest.mark.parametrize(
    ("method", "status", "kept"),
    [("GET", 204, False), ("HEAD", 204, False), ("HEAD", 200, True), ("GET", 304, True)],
)
async def test_what_has_no_length(method: str, status: int, kept: bool, world: World) -> None:
    """RFC 9110 8.6: none in a 204; what a HEAD or a 304 says is of another answer."""
    backend, client = await world.pair()
    for _ in range(2):
        await client.send(make_request(method=method))
        call = await backend.call()
        call.send(b"HTTP/1.1 %d Test\r\nserver: x\r\ncontent-length: 5\r\n\r\n" % status)
        answer = await client.response(head=method == "HEAD")
        assert answer.status == status
        assert answer.value("content-length") == ("5" if kept else None)
        assert answer.value("transfer-encoding") is None
        assert answer.value("server") == "edgefast"


async def test_interim_answers_have_no_length(world: World) -> None:
    backend, client = await world.pair()
    await client.send(make_request())
    hints = b"HTTP/1.1 103 Early Hints\r\ncontent-length: 5\r\nlink: </a>\r\n\r\n"
    call = await backend.call()
    call.send(hints)
    first = await client.response()  # it does not wait for the final answer
    assert (first.status, first.value("content-length")) == (103, None)
    assert first.value("link") == "</a>"
    call.send(PLAIN)
    assert (await client.response()).body == b"ok"


async def test_what_was_sent_ahead_of_a_tunnel_goes_on_when_the_client_reads_again(
    world: World,
) -> None:
    """More than is kept of requests to come, behind a 101 with more than the client takes at once."""
    backend = await world.backend()
    world.apply(make_fleet(make_cluster(backend.port)))
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # of what it accepts, too
    port = await world.listen(sock=listening)
    client = await world.client(port, receive_buffer=4096)
    ahead, behind = b"a" * 40_000, b"b" * 2_000_000
    await client.send(ask_for("echo") + ahead)
    await world.until(lambda: world.counters["downstream_bytes_received"] > len(ahead))
    (await backend.call()).send(SWITCH + b"upgrade: echo\r\n\r\n" + behind)
    await world.until(lambda: world.counters["tunnels_active"] == 1)
    assert (await client.response()).status == 101
    while client.received < len(behind):
        assert await client.receive()
    await world.until(lambda: backend.links[0].received == ahead)
