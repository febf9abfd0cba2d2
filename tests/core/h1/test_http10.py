"""Clients of HTTP/1.0: what they send and get where the setting serves them, byte by byte, and on real connections."""

from __future__ import annotations

import pytest

from core.backend import make_response, say
from core.client import make_request
from core.fleets import make_fleet, make_host, make_listener, make_rule
from core.h1.test_codec import SIZES, Request
from core.pipes import Pipe, PipeWorld
from core.world import World
from edgefast import ir

HOST = b"host: example.org\r\n"
KEEP = b"connection: keep-alive\r\n"
GET = b"GET /a HTTP/1.0\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n2;x\r\nhe\r\n3\r\nllo\r\n0\r\nchecksum: 1\r\n\r\n"
LENGTH = b"content-length: 5\r\n\r\nhello"


async def ask(pipes: PipeWorld, data: bytes, size: int = 0) -> tuple[Pipe, Pipe]:
    """A client that sends this, and the connection that its request goes on."""
    listener = make_listener(http10=True, http10_host="_", via="edge")
    pipes.apply(make_fleet(listener, pipes.cluster_of_pipes))
    client = await pipes.connect()
    await client.feed(data, size)
    return client, await pipes.dial()


def split(answer: bytes) -> tuple[bytes, dict[bytes, bytes], bytes]:
    """Status line, headers, and what follows."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    pairs = (line.lower().partition(b": ") for line in lines)
    return first, {name: value for name, _, value in pairs}, rest


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "keep", [b"", KEEP, b"connection: Keep-Alive, x\r\nproxy-connection: x\r\n"]
)
@pytest.mark.parametrize("framed", [LENGTH, CHUNKED, b"\r\nhello"])
async def test_answers(size: int, keep: bytes, framed: bytes, pipes: PipeWorld) -> None:
    """No chunks, trailers or 1xx; a length alone keeps the connection."""
    client, backend = await ask(pipes, GET + HOST + keep + b"te: trailers\r\n\r\n", size)
    got = Request(backend.take())
    assert (got.method, got.target, got.headers[b"host"]) == (b"GET", b"/a", b"example.org")
    assert b"connection" not in got.headers and b"te" not in got.headers
    assert got.headers[b"via"] == b"1.0 edge"
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n"
    await backend.feed(hints + b"HTTP/1.1 200 OK\r\n" + framed, size)
    if framed == b"\r\nhello":
        backend.finish()
    await pipes.until(lambda: client.sent.endswith(b"hello"))
    first, headers, body = split(client.take())
    kept = bool(keep) and framed == LENGTH
    assert (first, body) == (b"HTTP/1.1 200 OK", b"hello")
    assert headers[b"connection"] == (b"keep-alive" if kept else b"close")
    assert (b"content-length" in headers) == (framed == LENGTH)
    assert not {b"transfer-encoding", b"trailer", b"link"} & set(headers)
    await pipes.until(lambda: client.ended is not kept)


@pytest.mark.parametrize("size", SIZES)
async def test_a_connection_that_stays(size: int, pipes: PipeWorld) -> None:
    """Requests in either version, with and without a body, one behind the other."""
    post = b"POST /b HTTP/1.0\r\n" + HOST + KEEP + LENGTH
    new = b"GET /c HTTP/1.1\r\n" + HOST + b"\r\n"
    client, backend = await ask(pipes, post + new + GET + HOST + b"\r\n" + new, size)
    for target, body, words in (
        (b"/b", b"hello", b"keep-alive"),
        (b"/c", b"", None),
        (b"/a", b"", b"close"),
    ):
        await pipes.until(lambda: backend.sent and Request(backend.sent).ended)
        got = Request(backend.take())
        assert (got.target, got.body) == (target, body)
        via = b"1.1 edge" if target == b"/c" else b"1.0 edge"
        assert got.headers[b"via"] == via
        await backend.feed(b"HTTP/1.1 200 OK\r\n" + LENGTH, size)
        await pipes.until(lambda: client.sent.endswith(b"hello"))
        assert split(client.take())[1].get(b"connection") == words
    await pipes.until(lambda: client.ended)
    assert not backend.sent  # what came behind the last request is not read
    assert pipes.counters["http10_requests"] == 2


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("line", "host"),
    [
        (b"GET / HTTP/1.0\r\n", b"_"),
        (b"\r\nGET / HTTP/1.0\r\nx-a: 1\r\n", b"_"),
        (b"GET http://other:80/ HTTP/1.0\r\n", b"other:80"),
        (b"GET / HTTP/1.0\r\nhost: own\r\n", b"own"),
    ],
)
async def test_a_request_without_host(
    size: int, line: bytes, host: bytes, pipes: PipeWorld
) -> None:
    client, backend = await ask(pipes, line + KEEP + b"\r\n", size)
    for _ in range(2):  # the second parser skips the second head
        await pipes.until(lambda: backend.sent)
        got = Request(backend.take())
        assert (got.target, got.headers[b"host"]) == (b"/", host)
        await backend.feed(b"HTTP/1.1 200 OK\r\n" + LENGTH, size)
        await pipes.until(lambda: client.sent.endswith(b"hello"))
        client.take()
        await client.feed(line + KEEP + b"\r\n", size)
    await pipes.until(lambda: backend.sent)
    await backend.feed(b"HTTP/1.1 200 OK\r\n" + LENGTH, size)


async def test_a_length_after_head(pipes: PipeWorld) -> None:
    client, backend = await ask(pipes, b"HEAD / HTTP/1.0\r\n" + HOST + KEEP + b"\r\n")
    backend.take()
    await backend.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
    _, headers, body = split(client.take())
    assert (headers[b"connection"], headers[b"content-length"], body) == (b"keep-alive", b"5", b"")
    assert not client.ended


async def test_expect_and_upgrade_are_ignored(pipes: PipeWorld) -> None:
    lines = b"expect: 100-continue\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    head = b"POST / HTTP/1.0\r\n" + HOST + lines + b"content-length: 5\r\n\r\n"
    client, backend = await ask(pipes, head + b"he")
    assert client.sent == b""
    await client.feed(b"llo")
    await pipes.until(lambda: backend.sent and Request(backend.sent).ended)
    got = Request(backend.take())
    assert got.body == b"hello" and not {b"expect", b"upgrade", b"connection"} & set(got.headers)
    await backend.feed(
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    )
    assert split(client.take())[0].startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (GET + b"\r\n", 400),
        (b"POST / HTTP/1.0\r\n" + HOST + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (
            b"POST / HTTP/1.0\r\n"
            + HOST
            + b"transfer-encoding: identity\r\ncontent-length: 1\r\n\r\nx",
            400,
        ),
        (b"GET http://a,b/ HTTP/1.0\r\n\r\n", 400),
        (b"GET https://a/ HTTP/1.0\r\n\r\n", 400),
    ],
)
async def test_refused(request_: bytes, status: int, world: World) -> None:
    backend, client = await world.pair(say("x"), make_listener(http10=True))
    answer = await client.ask(request_ + make_request())
    assert (answer.status, answer.value("connection")) == (status, "close")
    assert await client.ending() == "closed"
    assert backend.count == 0


async def test_without_the_setting(world: World) -> None:
    _, client = await world.pair(say("x"))
    answer = await client.ask(GET + HOST + KEEP + b"\r\n")
    assert (answer.status, answer.value("upgrade")) == (426, "HTTP/1.1")
    assert world.counters["http10_requests"] == 0
    assert await client.ending() == "closed"


async def test_a_post_without_a_length_is_the_last_request(world: World) -> None:
    """Its body, if it has one, is not read as a request."""
    backend, client = await world.pair(say("x"), make_listener(http10=True))
    answer = await client.ask(
        b"POST / HTTP/1.0\r\n" + HOST + KEEP + b"\r\n" + make_request("/evil")
    )
    assert answer.value("connection") == "close"
    assert await client.ending() == "closed"
    assert backend.count == 1


@pytest.mark.parametrize(("keep", "word"), [(KEEP, "keep-alive"), (b"", "close")])
async def test_answers_of_its_own(keep: bytes, word: str, world: World) -> None:
    """429 has chunks in HTTP/1.1 alone."""
    listener = make_listener(http10=True)
    _, client = await world.pair(say("x"), listener, make_rule(status=429))
    for _ in range(2 if keep else 1):
        answer = await client.ask(GET + HOST + keep + b"\r\n")
        assert (answer.status, answer.value("connection")) == (429, word)
        assert answer.value("content-length") == "0"
    if keep:
        again = await client.get()
        assert (again.value("transfer-encoding"), again.value("connection")) == ("chunked", None)


async def test_a_truncated_body_ends_with_a_reset(world: World) -> None:
    backend, client = await world.pair(None, make_listener(http10=True))
    await client.send(GET + HOST + b"\r\n")
    call = await backend.call()
    call.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe")
    got = b""
    while not got.endswith(b"he"):
        got += await client.receive()
    call.link.close()
    with pytest.raises(ConnectionResetError):
        await client.receive()


async def test_a_client_that_stops_sending_gets_a_reset(world: World) -> None:
    """In the middle of a body that only the end of the connection completes."""
    backend, client = await world.pair(None, make_listener(http10=True))
    await client.send(GET + HOST + b"\r\n")
    call = await backend.call()
    call.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
    got = b""
    while not got.endswith(b"hello"):
        got += await client.receive()
    client.shut_writing()
    with pytest.raises(ConnectionResetError):
        await client.receive()


async def test_the_host_decides(world: World) -> None:
    """The default host is the name of a listener's or a route's host, or of none of them."""
    backend = await world.backend(lambda call: make_response(call.message.value(b"host") or b""))
    cluster = ir.Cluster(name="c", endpoints=(ir.Endpoint(address="127.0.0.1", port=backend.port),))
    named = make_host(make_rule("c", route="ns/named"), hostname="default.test")
    listener = make_listener(http10=True, http10_host="default.test")
    client = await world.client_of(make_fleet(listener, named, cluster))
    answer = await client.ask(GET + KEEP + b"\r\n")
    assert (answer.status, answer.body) == (200, b"default.test")
    assert (await client.ask(GET + b"host: other\r\n" + KEEP + b"\r\n")).status == 404


async def test_too_many_headers_with_the_host(world: World) -> None:
    listener = make_listener(http10=True, http10_host="_", header_count=3)
    _, client = await world.pair(say("x"), listener)
    assert (await client.ask(GET + KEEP + b"a: 1\r\n\r\n")).status == 200
    assert (await client.ask(GET + KEEP + b"a: 1\r\nb: 1\r\n\r\n")).status == 431
    assert world.counters["head_refused_too_many_headers"] == 1
    assert await client.ending() == "closed"


async def test_the_log_has_the_protocol(world: World) -> None:
    log = ir.AccessLog(text=(ir.LogPiece(operator="PROTOCOL"),))
    listener = make_listener(http10=True, http10_host="_", log=log)
    _, client = await world.pair(say("x"), listener)
    await client.ask(GET + KEEP + b"\r\n")
    await client.ask(make_request())
    await world.until(lambda: len(world.texts()) == 2)
    assert world.texts() == ["HTTP/1.0", "HTTP/1.1"]
