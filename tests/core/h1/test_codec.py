"""The HTTP/1.1 codecs, byte by byte: what they make of a message depends on its bytes, not on how these arrive."""

from __future__ import annotations

import asyncio

import h11
import pytest

from core.fleets import CLUSTER, make_fleet, make_rule
from core.pipes import Pipe, PipeWorld
from edgefast import ir

SIZES = [1, 2, 3, 7, 64, 0]  # bytes that come at once; 0: all of them
HOST = b"host: example.org\r\n"
Fields = list[tuple[bytes, bytes]]


class Request:
    """What a backend was sent, as h11 reads it."""

    def __init__(self, data: bytes) -> None:
        reader = h11.Connection(h11.SERVER)
        reader.receive_data(data)
        head = reader.next_event()
        assert isinstance(head, h11.Request)
        self.method, self.target = head.method, head.target
        self.headers = dict(head.headers)
        self.body, self.ended, self.trailers = _body(reader)
        self.rest = reader.trailing_data[0] if self.ended else b""


class Response:
    """What a client was sent, as h11 reads it."""

    def __init__(self, data: bytes) -> None:
        reader = h11.Connection(h11.CLIENT)
        asked = [("host", "x"), ("connection", "upgrade"), ("upgrade", "echo")]
        reader.send(h11.Request(method="GET", target="/", headers=asked))
        reader.send(h11.EndOfMessage())
        reader.receive_data(data)
        head = reader.next_event()
        assert isinstance(head, h11.Response | h11.InformationalResponse), head
        self.status = head.status_code
        self.headers = dict(head.headers)
        self.body, self.ended, self.trailers = b"", True, Fields()
        if isinstance(head, h11.Response):
            self.body, self.ended, self.trailers = _body(reader)
        self.rest = reader.trailing_data[0] if self.ended else b""


def _body(reader: h11.Connection) -> tuple[bytes, bool, Fields]:
    body = b""
    while isinstance(event := reader.next_event(), h11.Data):
        body += event.data
    if not isinstance(event, h11.EndOfMessage):
        return body, False, []
    return body, True, [(bytes(name), bytes(value)) for name, value in event.headers]


async def ask(pipes: PipeWorld, data: bytes, size: int, *rules: ir.Rule) -> tuple[Pipe, Pipe]:
    """A client that sends this, and the connection that its request goes on."""
    pipes.apply(make_fleet(pipes.cluster_of_pipes, *rules))
    client = await pipes.connect()
    await client.feed(data, size)
    return client, await pipes.dial()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("head", "framed", "kind"),
    [
        (b"content-length: 11\r\n", b"hello world", b"content-length"),
        (
            b"transfer-encoding: chunked\r\n",
            b"5;x=1\r\nhello\r\n006\r\n world\r\n0\r\na: b\r\n\r\n",
            b"transfer-encoding",
        ),
    ],
)
async def test_request_bodies(
    size: int, head: bytes, framed: bytes, kind: bytes, pipes: PipeWorld
) -> None:
    message = b"POST /a?b HTTP/1.1\r\n" + HOST + head + b"\r\n" + framed
    client, backend = await ask(pipes, message, size)
    await pipes.until(lambda: Request(backend.sent).ended)
    got = Request(backend.take())
    assert (got.method, got.target, got.body, got.rest) == (b"POST", b"/a?b", b"hello world", b"")
    assert kind in got.headers and b"connection" not in got.headers
    await backend.feed(b"HTTP/1.1 204 No Content\r\n\r\n", size)
    assert Response(client.take()).status == 204
    assert not client.ended


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        (b"content-length: 5\r\n\r\nhello", False),
        (b"transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;y\r\nllo\r\n0\r\n\r\n", False),
        (b"\r\nhello", True),
    ],
)
async def test_responses(size: int, answer: bytes, ends: bool, pipes: PipeWorld) -> None:
    client, backend = await ask(pipes, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", size)
    await backend.feed(
        b"HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\nHTTP/1.1 200 OK\r\n" + answer, size
    )
    if ends:
        assert not Response(Response(client.sent).rest).ended
        backend.finish()
        await pipes.until(lambda: backend.ended)
    first = Response(client.take())
    assert (first.status, first.headers) == (103, {b"link": b"<a>"})
    got = Response(first.rest)
    assert (got.status, got.body, got.ended, got.rest) == (200, b"hello", True, b"")
    assert backend.ended is ends  # one that ended with its body is of no use any more
    assert not client.ended


@pytest.mark.parametrize("size", SIZES)
async def test_pipelined_requests_are_answered_in_order(size: int, pipes: PipeWorld) -> None:
    pair = b"".join(b"GET /%d HTTP/1.1\r\n%b\r\n" % (i, HOST) for i in range(2))
    client, backend = await ask(pipes, pair, size)
    for i in range(2):
        await pipes.until(lambda: backend.sent)
        assert Request(backend.take()).target == b"/%d" % i
        await backend.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % i, size)
        assert Response(client.take()).body == b"%d" % i
    assert len(pipes.dialled) == 1


@pytest.mark.parametrize("size", SIZES)
async def test_the_last_answer_says_so(size: int, pipes: PipeWorld) -> None:
    message = b"GET / HTTP/1.1\r\nconnection: close\r\n" + HOST + b"\r\n"
    client, backend = await ask(pipes, message, size)
    assert b"connection" not in Request(backend.take()).headers
    await backend.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", size)
    assert Response(client.take()).headers[b"connection"] == b"close"
    assert client.ended and not backend.ended
    await client.feed(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", size)
    assert not client.sent and not backend.sent


@pytest.mark.parametrize("size", SIZES)
async def test_a_switch_makes_a_tunnel(size: int, pipes: PipeWorld) -> None:
    message = b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: echo\r\n" + HOST + b"\r\n"
    client, backend = await ask(pipes, message, size)
    asked = Request(backend.take())
    assert (asked.headers[b"connection"], asked.headers[b"upgrade"]) == (b"upgrade", b"echo")
    switch = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n"
    await backend.feed(switch + b"not HTTP\r\n\r\n", size)
    got = Response(client.take())
    assert (got.status, got.headers[b"connection"]) == (101, b"upgrade")
    assert got.rest == b"not HTTP\r\n\r\n"
    await client.feed(b"5\r\nneither", size)
    assert backend.take() == b"5\r\nneither"
    client.finish()
    await pipes.until(lambda: backend.ended)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"GET / HTTP/1.1\r\nhost : x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\nx\r\n", 400),
        (b"GET / HTTP/3.0\r\n" + HOST + b"\r\n", 505),
    ],
)
async def test_a_fault_of_the_client_is_answered_once(
    size: int, message: bytes, status: int, pipes: PipeWorld
) -> None:
    pipes.apply(make_fleet(pipes.cluster_of_pipes))
    client = await pipes.connect()
    await client.feed(message + b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", size)
    got = Response(client.take())
    assert (got.status, got.headers[b"connection"], got.rest) == (status, b"close", b"")
    assert client.ended


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
    ],
)
async def test_a_fault_of_the_backend_ends_its_connection(
    size: int, answer: bytes, pipes: PipeWorld
) -> None:
    client, backend = await ask(pipes, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", size)
    await backend.feed(answer, size)
    got = Response(client.take())
    assert (got.status, backend.ended, client.ended) == (502, True, False)
    assert b"connection" not in got.headers


async def test_another_try_is_framed_anew(pipes: PipeWorld) -> None:
    retry = ir.Retry(codes=(503,), attempts=1, backoff=1)
    message = (
        b"PUT / HTTP/1.1\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    )
    client, backend = await ask(pipes, message, 0, make_rule(CLUSTER, retry=retry))
    await pipes.until(lambda: Request(backend.sent).ended)
    first = backend.take()
    await backend.feed(b"HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n")
    second = await pipes.dial(2)
    await pipes.until(lambda: Request(second.sent).ended)
    again = second.take()
    assert first.partition(b"\r\n\r\n")[0] == again.partition(b"\r\n\r\n")[0]
    assert Request(first).body == Request(again).body == b"ok"
    await second.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert Response(client.take()).status == 200


async def test_a_request_that_a_closed_connection_took_nothing_of_goes_again(
    pipes: PipeWorld,
) -> None:
    """With any method, and where the kernel tells of the end behind the write."""
    client, first = await ask(pipes, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n", 0)
    await first.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    client.take()

    async def leave() -> None:
        first.close()

    message = b"POST /again HTTP/1.1\r\n" + HOST + b"content-length: 0\r\n\r\n"
    await asyncio.gather(client.feed(message), leave())
    second = await pipes.dial(2)
    assert Request(second.take()).target == b"/again"
    await second.feed(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert Response(client.take()).status == 204
