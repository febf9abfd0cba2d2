"""gRPC-Web becomes gRPC, and its answers gRPC-Web: every piece of both, over HTTP/1.1 from the client."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import pytest

from core.apart import apart, shift
from core.client import Client, Response
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.h2.backend import Ask, H2Backend
from core.world import World
from edgefast import ir

KIND = ("content-type", "application/grpc+proto")
HELLO = b"\0\0\0\0\5hello"
WEB, TEXT = "application/grpc-web+proto", "application/grpc-web-text+proto"


def request(kind: str, body: bytes, *, chunks: int = 0) -> bytes:
    """A call; `chunks`: sent in pieces of so many bytes, without a length."""
    head = f"POST /a.B/C HTTP/1.1\r\nhost: test\r\ncontent-type: {kind}\r\nx-grpc-web: 1\r\n"
    if not chunks:
        return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    pieces = [body[at : at + chunks] for at in range(0, len(body), chunks)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return f"{head}transfer-encoding: chunked\r\n\r\n".encode() + framed + b"0\r\n\r\n"


def read_web(answer: Response) -> tuple[list[bytes], dict[str, str]]:
    """Messages and trailers of an answer."""
    body = answer.body
    kind = answer.value("content-type") or ""
    assert kind.startswith("application/grpc-web")
    if kind.startswith("application/grpc-web-text"):
        body = b"".join(
            b64decode(body[at : at + 4], validate=True) for at in range(0, len(body), 4)
        )
    messages: list[bytes] = []
    while body:
        flags, size = body[0], int.from_bytes(body[1:5], "big")
        piece, body = body[5 : 5 + size], body[5 + size :]
        assert len(piece) == size
        if flags & 0x80:
            assert body == b"", "nothing comes behind trailers"
            lines = piece.decode().split("\r\n")
            assert lines.pop() == ""
            return messages, {
                name: value.strip() for name, _, value in (x.partition(":") for x in lines)
            }
        messages.append(piece)
    raise AssertionError("no trailers")


def echo(ask: Ask) -> None:
    """The message twice, and a status."""
    ask.head(200, KIND, ("x-head", "1"))
    ask.data(ask.body)
    ask.data(ask.body)
    ask.trail(("grpc-status", "0"), ("grpc-message", "fine"), ("x-behind", "2"))


async def start(
    world: World, answer: Callable[[Ask], None] | None = echo, *, web: bool = True, **http: Any
) -> tuple[H2Backend, Client]:
    """A backend behind a port that translates."""
    backend = H2Backend(answer)
    world.keep(await backend.start())
    listener = make_listener(grpc=ir.GrpcSettings(web=web), **http)
    port = await world.serve(make_fleet(listener, make_cluster(backend.port, protocol="h2")))
    return backend, await world.client(port)


@pytest.mark.parametrize("chunks", [0, 1, 3, 100])
@pytest.mark.parametrize("kind", [WEB, TEXT])
async def test_a_call(world: World, kind: str, chunks: int) -> None:
    backend, client = await start(world)
    body = HELLO if kind == WEB else b64encode(HELLO)
    for _ in range(2):
        answer = await client.ask(request(kind, body, chunks=chunks))
        assert (answer.status, answer.value("content-type")) == (200, kind)
        assert answer.value("x-head") == "1"
        assert answer.trailers == ()
        messages, trailers = read_web(answer)
        assert messages == [b"hello", b"hello"]
        assert trailers == {"grpc-status": "0", "grpc-message": "fine", "x-behind": "2"}
    ask = backend.asks[0]
    assert ask.body == HELLO
    assert ask.value("content-type") == "application/grpc+proto"
    assert ask.value("te") == "trailers"
    assert [name for name, _ in ask.fields].count("content-type") == 1
    length = str(len(HELLO)) if kind == WEB and not chunks else None
    assert ask.value("content-length") == length
    assert world.counters["grpc_web_requests"] == 2
    assert [line["grpc_status"] for line in world.lines()] == ["OK", "OK"]


async def test_padding_in_the_middle(world: World) -> None:
    """A client pads whenever it flushes."""
    backend, client = await start(world)
    text = b"".join(b64encode(HELLO[at : at + 2]) for at in range(0, len(HELLO), 2))
    messages, _ = read_web(await client.ask(request(TEXT, text)))
    assert messages == [b"hello", b"hello"]
    assert backend.asks[0].body == HELLO


@pytest.mark.parametrize(
    "text", [b"AAAA AAA", b"A", b"AAAAB", b"====", b"AA=A", b"-_-_", b"AAAA\r\n"]
)
@pytest.mark.parametrize("chunks", [0, 2])
async def test_text_that_is_none(world: World, text: bytes, chunks: int) -> None:
    backend, client = await start(world)
    answer = await client.ask(request(TEXT, text, chunks=chunks))
    messages, trailers = read_web(answer)
    assert (messages, trailers["grpc-status"]) == ([], "13")
    assert all(not ask.ended for ask in backend.asks)
    (line,) = world.lines()
    assert line["grpc_status"] == "INTERNAL"


async def test_large_messages(world: World) -> None:
    """Above every window and buffer, both ways."""
    backend, client = await start(world)
    message = b"\0" + (3_000_000).to_bytes(4, "big") + bytes(range(250)) * 12_000
    for kind, body in ((WEB, message), (TEXT, b64encode(message))):
        answer = await client.ask(request(kind, body))
        messages, _ = read_web(answer)
        assert messages == [message[5:]] * 2
    assert [ask.body == message for ask in backend.asks] == [True, True]


@pytest.mark.parametrize("kind", [WEB, TEXT])
async def test_a_status_alone(world: World, kind: str) -> None:
    """A browser sees the fields of a head that CORS exposes, and a frame whatever that says."""
    _, client = await start(
        world,
        lambda ask: ask.head(
            200,
            KIND,
            ("grpc-status", "5"),
            ("grpc-message", "not%20here"),
            ("x-more", "1"),
            end=True,
        ),
    )
    answer = await client.ask(request(kind, b64encode(HELLO) if kind == TEXT else HELLO))
    assert read_web(answer) == ([], {"grpc-status": "5", "grpc-message": "not%20here"})
    assert (answer.value("grpc-status"), answer.value("x-more")) == (None, "1")
    assert world.lines()[0]["grpc_status"] == "NOT_FOUND"


@pytest.mark.parametrize("head", [(), (("grpc-status", "5"),)])
@pytest.mark.parametrize("kind", [WEB, TEXT])
async def test_one_frame_of_a_status(
    world: World, kind: str, head: tuple[tuple[str, str], ...]
) -> None:
    """A length of 0 is no end in HTTP/2: trailers may follow, and who says a status twice is heard once."""

    def answer(ask: Ask) -> None:
        ask.head(200, KIND, ("content-length", "0"), *head)
        ask.trail(("grpc-status", "7"))

    _, client = await start(world, answer)
    got = await client.ask(request(kind, b64encode(HELLO) if kind == TEXT else HELLO))
    assert read_web(got) == ([], {"grpc-status": "5" if head else "7"})


@pytest.mark.parametrize("kind", [WEB, TEXT])
async def test_own_answers(world: World, kind: str) -> None:
    listener = make_listener(grpc=ir.GrpcSettings(web=True))
    client = await world.client_of(
        make_fleet(listener, make_host(("/other", make_rule())), make_cluster())
    )
    for _ in range(2):
        answer = await client.ask(request(kind, b""))
        assert (answer.status, answer.value("content-type")) == (200, kind)
        found = read_web(answer)
        assert found == ([], {"grpc-status": "12", "grpc-message": "no route takes this call"})
    assert {line["grpc_status"] for line in world.lines()} == {"UNIMPLEMENTED"}


async def test_cors(world: World) -> None:
    """As the filter says, also on answers of the proxy's own."""
    cors = ir.Cors(allow_origins=("https://app.test",), expose_headers=("x-head",))
    listener = make_listener(grpc=ir.GrpcSettings(web=True))
    client = await world.client_of(make_fleet(listener, make_rule(cors=cors), make_cluster()))
    head = request(WEB, HELLO).replace(b"x-grpc-web: 1", b"origin: https://app.test")
    answer = await client.ask(head)
    assert read_web(answer)[1]["grpc-status"] == "14"
    assert answer.value("access-control-allow-origin") == "https://app.test"
    assert answer.value("access-control-expose-headers") == "x-head"


@pytest.mark.parametrize("kind", [WEB, TEXT])
async def test_switched_off(world: World, kind: str) -> None:
    """Both ways as it comes."""

    def answer(ask: Ask) -> None:
        ask.reply(ask.body, 200, ("content-type", ask.value("content-type") or ""))

    backend, client = await start(world, answer, web=False)
    got = await client.ask(request(kind, b"what ever"))
    assert (got.body, got.value("content-type")) == (b"what ever", kind)
    assert backend.asks[0].value("te") is None
    assert world.counters["grpc_web_requests"] == 0
    assert "grpc_status" not in world.lines()[0]


async def test_an_answer_that_is_not_grpc_goes_on(world: World) -> None:
    _, client = await start(
        world, lambda ask: ask.reply(b"<h1>", 404, ("content-type", "text/html"))
    )
    answer = await client.ask(request(WEB, HELLO))
    assert (answer.status, answer.body, answer.value("content-type")) == (404, b"<h1>", "text/html")
    assert world.lines()[0]["grpc_status"] == "UNIMPLEMENTED"


@pytest.mark.parametrize("kind", [WEB, TEXT])
async def test_messages_come_when_they_come(world: World, kind: str) -> None:
    """Of a stream nothing waits for more; a client that leaves is heard of."""
    backend, client = await start(world, None)
    await client.send(request(kind, HELLO if kind == WEB else b64encode(HELLO)))
    ask = await backend.ask()
    ask.head(200, KIND)
    got = b""
    for _ in range(5):
        before = len(got)
        ask.data(HELLO)
        want = b64encode(HELLO) if kind == TEXT else HELLO
        while not got[before:].endswith(want + b"\r\n"):
            got += await client.receive()
    client.reset()
    await world.until(lambda: ask.reset is not None)
    assert ask.reset == 8


@apart(clock=True)
async def test_a_timeout_behind_messages(world: World) -> None:
    """A frame says so, where gRPC has trailers."""
    backend, client = await start(world, None)
    head = request(WEB, HELLO).replace(b"x-grpc-web: 1", b"grpc-timeout: 10S")
    await client.send(head)
    ask = await backend.ask()
    ask.head(200, KIND)
    ask.data(HELLO)
    got = await client.receive()
    while not got.endswith(HELLO + b"\r\n"):
        got += await client.receive()
    shift(11)
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        got += await client.receive()
    assert b"\x80\0\0\0" in got and b"grpc-status: 4\r\n" in got


async def test_a_body_above_the_limit(world: World) -> None:
    """Counted as the backend gets it."""
    _, client = await start(world, body_size=len(HELLO))
    answer = await client.ask(request(TEXT, b64encode(HELLO)))
    assert read_web(answer)[1]["grpc-status"] == "0"
    answer = await client.ask(request(TEXT, b64encode(HELLO + b"x")))
    assert read_web(answer)[1]["grpc-status"] == "8"
