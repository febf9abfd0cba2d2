"""Encodings of answers: which answers, which clients, what is said of them, and how they end."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from typing import Any

import brotli
import pytest
import zstandard
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset

from core.backend import Backend, make_response
from core.client import Client, Gone, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.test_both import begin, events
from core.policy.policies import TRAFFIC
from core.world import World
from edgefast import ir

TEXT = b"".join(b"%d: a line of text that says little\n" % at for at in range(3000))
PLAIN = (("content-type", "text/plain"),)


def _unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


DECODE: dict[str, Any] = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": _unzstd}


def encoding(*names: Any, **more: Any) -> ir.PolicyUnit:
    """A unit that has answers encoded."""
    made = ir.Compression(encodings=names or ("gzip", "br", "zstd"), **more)
    return ir.PolicyUnit(name=TRAFFIC, traffic=ir.Traffic(compression=made))


async def serve(
    world: World, answer: Any = None, unit: ir.PolicyUnit | None = None, **http: Any
) -> tuple[Client, Backend]:
    """A client of a route with it, its backend."""
    backend = await world.backend(answer)
    fleet = make_fleet(
        make_listener(**http),
        make_host(make_rule(traffic=(TRAFFIC,))),
        make_cluster(backend.port),
        unit or encoding(),
    )
    return await world.client_of(fleet), backend


def asking(accepted: str = "gzip", **request: Any) -> bytes:
    return make_request(headers=[("accept-encoding", accepted)], **request)


@pytest.mark.parametrize("name", DECODE)
async def test_bytes_are_the_same(world: World, name: str) -> None:
    mixed = TEXT + random.Random(1).randbytes(100_000) + TEXT
    for body in (TEXT, mixed):
        client, _ = await serve(world, lambda call, body=body: make_response(body, 200, PLAIN))
        answer = await client.ask(asking(name))
        assert answer.value("content-encoding") == name
        assert answer.value("vary") == "Accept-Encoding"
        assert answer.value("content-length") is None
        assert DECODE[name](answer.body) == body
        line = world.lines()[-1]
        assert line["bytes_sent"] == len(answer.body)
    assert world.counters["compressed"] == 2
    assert world.counters["compressed_in"] == len(TEXT) + len(mixed)
    assert world.engine.dump()["pressing"] == 0


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ((("content-type", "image/png"),), False),
        ((("content-type", "text/html; charset=utf-8"),), True),
        ((("content-type", "application/problem+json"),), True),
        ((("content-type", "IMAGE/SVG+XML"),), True),
        ((), False),
        ((*PLAIN, ("content-encoding", "br")), False),
        ((*PLAIN, ("content-range", "bytes 0-1/2")), False),
        ((*PLAIN, ("cache-control", "private, No-Transform")), False),
        ((*PLAIN, ("cache-control", "max-age=1")), True),
    ],
)
async def test_which_answers(world: World, head: tuple[tuple[str, str], ...], told: bool) -> None:
    client, _ = await serve(world, lambda call: make_response(TEXT, 200, head))
    answer = await client.ask(asking())
    assert (answer.value("content-encoding") == "gzip") == told
    assert (gzip.decompress(answer.body) if told else answer.body) == TEXT
    plain = await client.ask(make_request())
    assert plain.body == TEXT and (plain.value("vary") == "Accept-Encoding") == told
    assert plain.value("content-length") == str(len(TEXT))


async def test_what_is_small_stays(world: World) -> None:
    client, _ = await serve(
        world,
        lambda call: make_response(TEXT[: int(call.path[1:])], 200, PLAIN),
        encoding(min_size=100),
    )
    for size, told in ((99, None), (100, "gzip")):
        answer = await client.ask(asking(path=f"/{size}"))
        assert answer.value("content-encoding") == told


async def test_a_list_is_read_up_to_a_length(world: World) -> None:
    client, _ = await serve(world, lambda call: make_response(TEXT, 200, PLAIN))
    for more, told in ((250, "gzip"), (251, None), (30_000, None)):
        lines = [
            ("accept-encoding", "gzip"),
            ("accept-encoding", "a," * (more // 2) + "a" * (more % 2)),
        ]
        answer = await client.ask(make_request(headers=lines))
        assert answer.value("content-encoding") == told, more
        assert answer.value("vary") == "Accept-Encoding"


async def test_what_is_above_the_bound_goes_on_as_it_is(world: World) -> None:
    """Also behind HTTP/2 clients' resets a place is free again."""
    backend = await world.backend()
    fleet = make_fleet(
        make_listener(http2=ir.Http2Settings(enabled=True)),
        make_host(make_rule(traffic=(TRAFFIC,))),
        make_cluster(backend.port, max_connections=1000),
        encoding(),
    )
    port = await world.serve(fleet)
    held = []
    for _ in range(4):
        client, frames = await begin(world, port)
        get = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")]
        for stream in range(1, 128, 2):
            frames.send_headers(stream, [*get, ("accept-encoding", "gzip")], end_stream=True)
        await client.send(frames.data_to_send())
        for _ in range(64):
            call = await backend.call()
            call.send(make_response(TEXT, 200, PLAIN)[:-1])
        held.append((client, frames))
    await world.until(lambda: world.engine.dump()["pressing"] == 256)
    late = await world.client(port)
    await late.send(asking())
    call = await backend.call()
    call.send(make_response(TEXT, 200, PLAIN))
    answer = await late.response()
    assert answer.value("content-encoding") is None and answer.body == TEXT
    client, frames = held[0]
    frames.reset_stream(1)
    await client.send(frames.data_to_send())
    await world.until(lambda: world.engine.dump()["pressing"] == 255)
    for client, _ in held:
        client.reset()
    await world.until(lambda: world.engine.dump()["pressing"] == 0)


async def test_a_fast_backend_is_read_in_small_pieces(world: World) -> None:
    """What is encoded in one turn is what a small read has: others have their turns in between."""
    noise = random.Random(3).randbytes(2_000_000)
    client, backend = await serve(world)
    await client.send(asking())
    call = await backend.call()
    call.send(make_response(noise, 200, PLAIN))
    reading = asyncio.ensure_future(client.response())
    before = most = 0
    while not reading.done():
        await world.turns(1)
        now = world.counters["compressed_in"]
        most, before = max(most, now - before), now
    assert gzip.decompress(reading.result().body) == noise
    assert 0 < most <= 65536


@pytest.mark.parametrize(("status", "method"), [(206, "GET"), (204, "GET"), (200, "HEAD")])
async def test_what_is_a_part_or_nothing_stays(world: World, status: int, method: str) -> None:
    body = TEXT if status == 206 or method == "HEAD" else b""
    raw = make_response(body, status, PLAIN)
    if method == "HEAD":
        raw = raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    client, _ = await serve(world, lambda call: raw)
    answer = await client.ask(asking(method=method), head=method == "HEAD")
    assert answer.status == status and answer.value("content-encoding") is None
    assert answer.value("vary") == ("Accept-Encoding" if method == "HEAD" else None)


@pytest.mark.parametrize(
    ("asked", "told", "etag", "vary"),
    [
        # what the client has of it says whether that was encoded
        ([("accept-encoding", "gzip"), ("if-none-match", 'W/"v1"')], (), 'W/"v1"', True),
        ([("if-none-match", '"v0", W/"v1"')], (), 'W/"v1"', True),
        ([("accept-encoding", "gzip"), ("if-none-match", '"v1"')], (), '"v1"', True),
        # else what it takes
        ([("accept-encoding", "gzip"), ("if-modified-since", "x")], (), 'W/"v1"', True),
        ([("accept-encoding", "gzip"), ("if-none-match", "*")], PLAIN, 'W/"v1"', True),
        ([("if-modified-since", "x")], (), '"v1"', True),
        # answers that are never encoded
        ([("accept-encoding", "gzip")], (("content-type", "image/png"),), '"v1"', False),
        ([("accept-encoding", "gzip")], (("cache-control", "no-transform"),), '"v1"', False),
        ([("accept-encoding", "gzip")], (("content-encoding", "br"),), '"v1"', False),
    ],
)
async def test_a_304_says_what_its_200_does(
    world: World, asked: list[tuple[str, str]], told: Any, etag: str, vary: bool
) -> None:
    """RFC 9110 15.4.5: Vary, and the ETag that the client knows."""
    raw = make_response(b"", 304, (("etag", '"v1"'), *told))
    client, _ = await serve(world, lambda call: raw.replace(b"content-length: 0\r\n", b""))
    answer = await client.ask(make_request(headers=asked))
    assert (answer.status, answer.value("etag")) == (304, etag)
    assert answer.value("vary") == ("Accept-Encoding" if vary else None)
    assert sum(name == "etag" for name, _ in answer.headers) == 1
    assert (await client.ask(make_request(headers=asked))).status == 304


async def test_what_is_said_of_it(world: World) -> None:
    head = (
        *PLAIN,
        ("etag", '"v1"'),
        ("accept-ranges", "bytes"),
        ("vary", "Origin"),
        ("digest", "x"),
    )
    client, _ = await serve(world, lambda call: make_response(TEXT, 200, head))
    answer = await client.ask(asking())
    assert answer.value("etag") == 'W/"v1"'
    assert answer.value("accept-ranges") is None and answer.value("digest") is None
    assert [value for name, value in answer.headers if name == "vary"] == [
        "Origin",
        "Accept-Encoding",
    ]
    plain = await client.ask(make_request())
    assert plain.value("etag") == '"v1"' and plain.value("accept-ranges") == "bytes"


async def test_what_comes_without_a_length_goes_on_at_once(world: World) -> None:
    client, backend = await serve(world)
    await client.send(asking())
    call = await backend.call()
    call.send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    call.send(b"9\r\ndata: 1\n\n\r\n")
    decoder, got = zlib.decompressobj(31), b""
    while b"\r\n\r\n" not in got:
        got += await client.receive()
    raw = got.partition(b"\r\n\r\n")[2]
    text = b""
    while b"data: 1" not in text:
        if not raw:
            raw = await client.receive()
        size, _, rest = raw.partition(b"\r\n")
        piece, raw = rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        text += decoder.decompress(piece)
    call.send(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")
    raw = await client.receive()
    while not raw.endswith(b"0\r\n\r\n"):
        raw += await client.receive()


async def test_a_backend_that_is_cut_ends_nothing(world: World) -> None:
    client, backend = await serve(world)
    await client.send(asking())
    call = await backend.call()
    call.send(make_response(TEXT, 200, PLAIN)[:-1])
    await world.turns()
    call.link.abort()
    with pytest.raises(Gone) as gone:
        await client.response()
    assert not gone.value.received.endswith(b"0\r\n\r\n")
    assert world.engine.dump()["pressing"] == 0


async def test_a_client_that_leaves(world: World) -> None:
    client, backend = await serve(world)
    await client.send(asking())
    call = await backend.call()
    call.send(make_response(TEXT, 200, PLAIN)[:-1])
    await world.until(lambda: world.engine.dump()["pressing"] == 1)
    client.reset()
    await world.until(lambda: world.engine.dump()["pressing"] == 0)


async def test_trailers_come_behind_it(world: World) -> None:
    client, backend = await serve(world)
    await client.send(make_request(headers=[("accept-encoding", "gzip"), ("te", "trailers")]))
    call = await backend.call()
    chunk = b"%x\r\n%b\r\n" % (len(TEXT), TEXT)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    call.send(head + chunk + b"0\r\nx-sum: 1\r\n\r\n")
    answer = await client.response()
    assert gzip.decompress(answer.body) == TEXT


async def test_http2_clients(world: World) -> None:
    fleet_backend = await world.backend(lambda call: make_response(TEXT, 200, PLAIN))
    fleet = make_fleet(
        make_listener(http2=ir.Http2Settings(enabled=True)),
        make_host(make_rule(traffic=(TRAFFIC,))),
        make_cluster(fleet_backend.port),
        encoding(),
    )
    client, frames = await begin(world, await world.serve(fleet))
    get = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "test")]
    frames.send_headers(1, [*get, ("accept-encoding", "br")], end_stream=True)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded)
    (head,) = (dict(one.headers) for one in found if isinstance(one, ResponseReceived))
    assert head["content-encoding"] == "br" and "content-length" not in head
    assert (
        brotli.decompress(b"".join(one.data for one in found if isinstance(one, DataReceived)))
        == TEXT
    )
    assert not [one for one in found if isinstance(one, StreamReset)]


async def test_a_slow_client_holds_no_more_than_others(world: World) -> None:
    noise = random.Random(3).randbytes(4_000_000)
    client, backend = await serve(world, lambda call: make_response(noise, 200, PLAIN))
    await client.send(asking())
    await world.turns(200)
    assert world.counters["compressed_in"] < len(noise)
    answer = await client.response()
    assert gzip.decompress(answer.body) == noise
