"""Calls of every kind from a real client of gRPC to a real server of it, through a GRPCRoute."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Iterator

import grpc
import pytest

from wire.grpc.backend import CEILING, GrpcBackend, open_channel, refused
from wire.harness import objects as make
from wire.harness.site import Site
from wire.http2.client import H2Client

LARGE = bytes(range(256)) * 4096  # 1 MiB: above every window that is there at first
SECOND = "1S"  # a deadline that only the proxy keeps: the client that asks for it does not


@pytest.fixture(scope="module")
def backend() -> Iterator[GrpcBackend]:
    with GrpcBackend() as running:
        yield running


@pytest.fixture(scope="module")
def site(backend: GrpcBackend) -> Iterator[Site]:
    objects = [
        make.grpc_route("calls", [make.rule("origin", matches=[make.method("test.Calls")])]),
        *make.service("origin", [("127.0.0.1", backend.port)]),
    ]
    with Site(objects) as running:
        yield running


@pytest.fixture(scope="module")
def channel(site: Site) -> Iterator[grpc.Channel]:
    with open_channel(site.port) as opened:
        yield opened


def test_unary(channel: grpc.Channel) -> None:
    assert channel.unary_unary("/test.Calls/Echo")(b"hello", timeout=CEILING) == b"hello"
    assert channel.unary_unary("/test.Calls/Echo")(b"", timeout=CEILING) == b""


def test_server_stream(channel: grpc.Channel) -> None:
    found = channel.unary_stream("/test.Calls/Many")(b"1000", timeout=CEILING)
    assert [*found] == [b"%d" % number for number in range(1000)]
    assert [*channel.unary_stream("/test.Calls/Many")(b"0", timeout=CEILING)] == []


def test_client_stream(channel: grpc.Channel) -> None:
    gather = channel.stream_unary("/test.Calls/Gather")
    words = [b"%d" % number for number in range(1000)]
    assert gather(iter(words), timeout=CEILING) == b" ".join(words)
    assert gather(iter(()), timeout=CEILING) == b""


def test_both_streams_take_turns(channel: grpc.Channel) -> None:
    """Each message is sent when the answer to the one before is there: nothing on the way waits for more."""
    sent: queue.Queue[bytes | None] = queue.Queue()
    answers = channel.stream_stream("/test.Calls/Chat")(iter(sent.get, None), timeout=CEILING)
    for number in range(50):
        sent.put(b"%d" % number)
        assert next(answers) == b"one: %d" % number
    sent.put(None)
    assert [*answers] == []
    assert answers.code() is grpc.StatusCode.OK


def test_many_calls_on_one_connection(channel: grpc.Channel) -> None:
    """A stream that is open and silent keeps none of the others waiting."""
    sent: queue.Queue[bytes | None] = queue.Queue()
    answers = channel.stream_stream("/test.Calls/Chat")(iter(sent.get, None), timeout=CEILING)
    sent.put(b"open")
    assert next(answers) == b"one: open"
    calls = [
        channel.unary_unary("/test.Calls/Echo").future(b"%d" % number, timeout=CEILING)
        for number in range(100)
    ]
    assert [one.result() for one in calls] == [b"%d" % number for number in range(100)]
    sent.put(None)
    assert [*answers] == []


def test_messages_above_every_window(channel: grpc.Channel) -> None:
    assert channel.unary_unary("/test.Calls/Echo")(LARGE, timeout=CEILING) == LARGE
    found = channel.stream_stream("/test.Calls/Chat")(iter([LARGE] * 3), timeout=CEILING)
    assert [*found] == [b"one: " + LARGE] * 3


@pytest.mark.parametrize("messages", [0, 3], ids=["alone", "behind messages"])
@pytest.mark.parametrize("code", [one for one in grpc.StatusCode if one.value[0]])
def test_statuses_are_the_backends(
    channel: grpc.Channel, code: grpc.StatusCode, messages: int
) -> None:
    """With their words in percent-encoding and the backend's trailers, whether there was an answer before or not."""
    asked = b"%d %d" % (code.value[0], messages)
    answers = channel.stream_stream("/test.Calls/Refuse")(iter([asked]), timeout=CEILING)
    got = []
    with pytest.raises(grpc.RpcError) as caught:
        got += answers  # what came before the error stays
    error = caught.value
    assert error.code() is code
    assert error.details() == f"status {code.name}: 100% of it, ünïcode"
    assert ("why", "asked for") in error.trailing_metadata()


def test_refused_while_the_client_goes_on(channel: grpc.Channel) -> None:
    """The answer is complete before the request is, and nothing of it is lost."""
    endless = itertools.chain([b"7"], itertools.repeat(bytes(1000)))
    error = refused(lambda: channel.stream_stream("/test.Calls/Refuse")(endless, timeout=CEILING))
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED


def test_metadata(channel: grpc.Channel) -> None:
    """Text, bytes, and one name twice, in order; there and back, before and behind the messages."""
    given = (("my-text", "a, b"), ("my-bytes-bin", b"\0\xff\n"), ("my-two", "1"), ("my-two", "2"))
    _, call = channel.unary_unary("/test.Calls/Echo").with_call(
        b"", metadata=given, timeout=CEILING
    )
    for found in (call.initial_metadata(), call.trailing_metadata()):
        assert [one for one in map(tuple, found) if one[0].startswith("my-")] == [*given]


@pytest.mark.parametrize("method", ["Wait", "Begin"])
def test_the_proxy_keeps_the_deadline(site: Site, backend: GrpcBackend, method: str) -> None:
    """A client that has forgotten its own: an answer by status, behind a message by trailers; a backend that was reached hears of it."""
    backend.forget()
    fields = [("content-type", "application/grpc"), ("te", "trailers"), ("grpc-timeout", SECOND)]
    with H2Client(site.port) as client:
        number = client.ask(fields, end=False, method="POST", path=f"/test.Calls/{method}")
        client.body(number, b"\0\0\0\0\2hi", end=True)
        answer = client.finish(number)
    said = dict(answer.fields) | dict(answer.trailers)
    assert (answer.status, answer.ended) == (200, True)
    assert (said[b"grpc-status"], said[b"content-type"]) == (b"4", b"application/grpc")
    assert answer.body == (b"\0\0\0\0\2hi" if answer.trailers else b"")
    assert not backend.began.is_set() or backend.ended.wait(CEILING)


@pytest.mark.parametrize("method", ["Wait", "Begin"])
def test_a_cancel_reaches_the_backend(
    channel: grpc.Channel, backend: GrpcBackend, method: str
) -> None:
    """And the deadline did before."""
    backend.forget()
    call = channel.unary_stream(f"/test.Calls/{method}")(b"hi", timeout=2 * CEILING)
    assert backend.began.wait(CEILING)
    assert backend.left is not None and backend.left <= 2 * CEILING + 1  # gRPC rounds up
    call.cancel()
    assert backend.ended.wait(CEILING)
    assert call.code() is grpc.StatusCode.CANCELLED
