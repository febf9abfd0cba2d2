"""When the second parser reads a head: whenever it differs from the connection's last one in what frames the message."""

from __future__ import annotations

from typing import Any

import pytest

import edgefast.core.fastpath as fastpath
from core.backend import Call, make_response, say
from core.client import make_request
from core.fleets import make_cluster, make_fleet, make_listener
from core.world import World

CHUNKED_END = b"1\r\na\r\n0\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKED_END


class Reads:
    """Counts the heads that httptools' parser of a kind reads."""

    def __init__(self, patch: pytest.MonkeyPatch, kind: str) -> None:
        self._heads = 0
        self._parser = getattr(fastpath, kind)
        patch.setattr(fastpath, kind, self._make)

    def take(self) -> int:
        """How many since the last call."""
        heads, self._heads = self._heads, 0
        return heads

    def _make(self, protocol: object) -> CountingParser:
        return CountingParser(self, self._parser(protocol))

    def add(self, data: bytes) -> None:
        self._heads += b"HTTP/1." in data


class CountingParser:
    """A parser that reports what it reads."""

    def __init__(self, reads: Reads, parser: Any) -> None:
        self._reads, self._parser = reads, parser

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def feed_data(self, data: memoryview) -> None:
        self._reads.add(bytes(data))
        self._parser.feed_data(data)


async def test_repeated_requests(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(monkeypatch, "HttpRequestParser")
    _, client = await world.pair(say("x"))
    for path, read in (("/", 1), ("/a?b=c", 0), ("/%41/../b", 0)):
        assert (await client.ask(make_request(path))).status == 200
        assert reads.take() == read, path
    other = [
        make_request(headers=[("a", "1")]),
        make_request(headers=[("a", "2")]),
        make_request(method="DELETE", headers=[("a", "2")]),
        make_request("http://test/", headers=[("a", "2")]),
        b"\r\n" + make_request(headers=[("a", "2")]),
        make_request(method="POST", body=b"ab"),
        make_request(method="POST", body=b"abc"),
    ]
    for request in [*other, make_request(), CHUNKED, CHUNKED]:
        assert (await client.ask(request)).status == 200, request
        assert reads.take() == 1, request


@pytest.mark.parametrize("line", [b"GET / HTTP/1.0\r\n", b"GET / HTTP/1.1\r\n"])
async def test_another_version(line: bytes, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class OtherVersion(CountingParser):
        def get_http_version(self) -> str:
            return "1.1" if self._parser.get_http_version() == "1.0" else "1.0"

    made = fastpath.HttpRequestParser
    reads = Reads(monkeypatch, "HttpRequestParser")
    monkeypatch.setattr(fastpath, "HttpRequestParser", lambda one: OtherVersion(reads, made(one)))
    _, client = await world.pair(say("x"), make_listener(http10=True))
    request = line + b"host: test\r\nconnection: keep-alive\r\n\r\n"
    assert (await client.ask(request)).status == 400
    assert world.counters["parser_disagreements"] == 1


async def test_repeated_requests_with_a_body(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(monkeypatch, "HttpRequestParser")
    _, client = await world.pair(lambda call: make_response(call.message.body))
    for body in (b"abc", b"def", b"ghi"):
        assert (await client.ask(make_request(method="POST", body=body))).body == body
    assert reads.take() == 1


async def test_connections_do_not_share_what_they_agreed_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch, "HttpRequestParser")
    backend = await world.backend(say("x"))
    port = await world.serve(make_fleet(make_cluster(backend.port)))
    for _ in range(3):
        assert (await (await world.client(port)).get()).status == 200
    assert reads.take() == 3


async def test_repeated_responses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(monkeypatch, "HttpResponseParser")
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKED_END
    answers = [
        (make_response(b"abc"), b"abc", 1),
        (make_response(b"def"), b"def", 0),
        (make_response(b"abcd"), b"abcd", 1),
        (make_response(b"abcd", headers=(("a", "b"),)), b"abcd", 1),
        (make_response(b"abcd", status=404, headers=(("a", "b"),)), b"abcd", 1),
        (b"HTTP/1.1 204 No\r\n\r\n", b"", 1),
        (b"HTTP/1.1 204 No\r\n\r\n", b"", 0),
        (chunked, b"a", 1),
        (chunked, b"a", 1),
    ]
    following = iter(answers)

    _, client = await world.pair(lambda call: next(following)[0])
    for data, body, read in answers:
        assert (await client.get()).body == body
        assert reads.take() == read, data


async def test_response_to_head_after_the_same_response_to_get(world: World) -> None:
    """The same bytes have a body in one place and none in the other."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"

    def answer(call: Call) -> bytes:
        return head + (b"" if call.message.method == b"HEAD" else b"abc")

    _, client = await world.pair(answer)
    for _ in range(2):
        assert (await client.get()).body == b"abc"
        response = await client.ask(make_request(method="HEAD"), head=True)
        assert response.value("content-length") == "3"


@pytest.mark.parametrize("characters", ["Allow", "Reject"])
async def test_each_byte_of_a_target_is_judged_alike(world: World, characters: Any) -> None:
    """By the first request of a connection, which both parsers read, and by the second, which one of them does."""
    backend = await world.backend(say("x"))
    listener = make_listener(raw_characters=characters)
    port = await world.serve(make_fleet(listener, make_cluster(backend.port)))
    for byte in range(256):
        for target in (b"/a%cb", b"/?a%cb"):
            request = b"GET " + target % byte + b" HTTP/1.1\r\nhost: test\r\n\r\n"
            first = await world.client(port)
            second = await world.client(port)
            assert (await second.get()).status == 200
            judged = [(await client.ask(request)).status for client in (first, second)]
            assert judged[0] == judged[1], request
            first.close()
            second.close()
