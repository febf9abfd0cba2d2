"""Fields behind a body, byte by byte: which go on, to whom, and that rules and repeats do with them what docs/reference/http1.md says."""

from __future__ import annotations

import pytest

from core.fleets import CLUSTER, make_fleet, make_listener, make_rule
from core.h1.test_codec import HOST, SIZES, Fields, Request, Response, ask
from core.pipes import PipeWorld
from edgefast import ir

CHUNKED = b"transfer-encoding: chunked\r\n"
BODY = b"2\r\nok\r\n0\r\n"
LINES = (
    b"Checksum: a b\r\nhost: evil\r\nContent-Length: 5\r\ncookie: a=b\r\nx_y: 1\r\nx-edge-internal: true\r\n"
    b"grpc-status: 0\r\nempty:\r\n"
)
PASSED: Fields = [(b"checksum", b"a b"), (b"grpc-status", b"0"), (b"empty", b"")]
DONE = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def post(headers: bytes = b"", lines: bytes = LINES) -> bytes:
    """A request with these lines behind its body."""
    return b"POST / HTTP/1.1\r\n" + HOST + CHUNKED + headers + b"\r\n" + BODY + lines + b"\r\n"


@pytest.mark.parametrize("size", SIZES)
async def test_a_backend_has_those_of_the_request(size: int, pipes: PipeWorld) -> None:
    client, backend = await ask(pipes, post(b"connection: TE\r\n") + post(lines=b""), size)
    for passed in (PASSED, []):  # those of one request are none of the next one's
        await pipes.until(lambda: backend.sent and Request(backend.sent).ended)
        got = Request(backend.take())
        assert (got.body, got.trailers, got.rest) == (b"ok", passed, b"")
        assert got.headers[b"host"] == b"example.org"
        await backend.feed(DONE, size)
    assert not client.ended and len(pipes.dialled) == 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("asks", "passed"),
    [
        (b"te: trailers\r\nconnection: te\r\n", True),
        (b"te: deflate, TRAILERS\r\n", True),
        (b"", False),
    ],
)
async def test_a_client_that_takes_them_has_those_of_the_response(
    size: int, asks: bytes, passed: bool, pipes: PipeWorld
) -> None:
    client, backend = await ask(pipes, b"GET / HTTP/1.1\r\n" + HOST + asks + b"\r\n", size)
    assert b"te" not in Request(backend.take()).headers
    await backend.feed(b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"\r\n" + BODY + LINES + b"\r\n", size)
    got = Response(client.take())
    also = [(b"x_y", b"1")]  # a backend may say what it likes in its names
    assert (got.body, got.ended, got.rest) == (b"ok", True, b"")
    assert got.trailers == (sorted(PASSED + also, key=_place) if passed else [])
    assert not backend.ended and not client.ended


def _place(field: tuple[bytes, bytes]) -> int:
    return LINES.lower().index(field[0] + b":")


async def test_one_without_a_body_has_no_place_for_them(pipes: PipeWorld) -> None:
    message = b"HEAD / HTTP/1.1\r\n" + HOST + b"te: trailers\r\n\r\n"
    client, backend = await ask(pipes, message, 0)
    backend.take()
    await backend.feed(b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"\r\n")
    head, _, rest = client.take().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ") and rest == b""


@pytest.mark.parametrize("named", [b"checksum", b"other"])
async def test_where_connection_names_fields_none_go_on(named: bytes, pipes: PipeWorld) -> None:
    nominated = b"connection: " + named + b"\r\n"
    client, backend = await ask(pipes, post(nominated + b"te: trailers\r\n"), 0)
    assert Request(backend.take()).trailers == []
    await backend.feed(
        b"HTTP/1.1 200 OK\r\n" + nominated + CHUNKED + b"\r\n" + BODY + LINES + b"\r\n"
    )
    got = Response(client.take())
    assert (got.body, got.ended, got.trailers) == (b"ok", True, [])


async def test_what_a_rule_removes_or_sets_does_not_come_in_behind(pipes: PipeWorld) -> None:
    ops = ir.HeaderOps(set=(("Checksum", "mine"),), add=(("X-Added", "1"),), remove=("empty",))
    rule = make_rule(CLUSTER, request_headers=ops, response_headers=ops)
    client, backend = await ask(pipes, post(b"te: trailers\r\n"), 0, rule)
    got = Request(backend.take())
    assert got.headers[b"checksum"] == b"mine"
    assert got.trailers == [(b"grpc-status", b"0")]
    await backend.feed(b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"\r\n" + BODY + LINES + b"\r\n")
    answer = Response(client.take())
    assert answer.headers[b"checksum"] == b"mine"
    assert answer.trailers == [(b"x_y", b"1"), (b"grpc-status", b"0")]


async def test_another_try_has_them_too(pipes: PipeWorld) -> None:
    rule = make_rule(CLUSTER, retry=ir.Retry(codes=(503,), attempts=1, backoff=1))
    client, first = await ask(pipes, post(), 0, rule)
    await pipes.until(lambda: Request(first.sent).ended)
    sent = first.take()
    await first.feed(b"HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n")
    second = await pipes.dial(2)
    await pipes.until(lambda: Request(second.sent).ended)
    again = Request(second.take())
    assert Request(sent).trailers == again.trailers == PASSED
    await second.feed(DONE)
    assert Response(client.take()).status == 200


@pytest.mark.parametrize("size", SIZES)
async def test_too_many_bytes_of_them_are_a_fault(size: int, pipes: PipeWorld) -> None:
    client, backend = await ask(pipes, post(lines=b"a: " + b"b" * 8186 + b"\r\n"), size)
    await pipes.until(lambda: Request(backend.sent).ended)
    assert Request(backend.take()).trailers == [(b"a", b"b" * 8186)]
    await backend.feed(DONE)
    assert Response(client.take()).status == 200
    await client.feed(post(lines=b"a: " + b"b" * 8188 + b"\r\n"), size)
    await pipes.until(lambda: client.sent)
    assert Response(client.take()).status == 400
    assert client.ended and (backend.ended or not backend.sent)


@pytest.mark.parametrize("setting", ["Reject", "Drop", "Allow"])
async def test_underscores_in_names_are_as_the_setting_says(setting: str, pipes: PipeWorld) -> None:
    """And never one that would be dropped if it were spelt with a hyphen."""
    pipes.apply(make_fleet(pipes.cluster_of_pipes, make_listener(underscores=setting)))
    client = await pipes.connect()
    await client.feed(post(lines=b"x_y: 1\r\ncontent_length: 9\r\nX_Forwarded_For: a\r\n"))
    backend = await pipes.dial()
    await pipes.until(lambda: Request(backend.sent).ended)
    assert Request(backend.take()).trailers == ([(b"x_y", b"1")] if setting == "Allow" else [])
    await backend.feed(DONE)
    assert Response(client.take()).status == 200
