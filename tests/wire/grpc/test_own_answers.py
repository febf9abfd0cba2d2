"""What a real client of gRPC makes of the proxy's own answers, and of a backend that it does not reach by HTTP/2 (docs/guides/grpc.md)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.ports import free_port
from wire.harness.site import Site
from wire.http2.client import H2Client

DEADLINE = 20.0  # seconds, against hangs
OK = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ntransfer-encoding: chunked\r\n\r\n"
    b"7\r\n\0\0\0\0\2ok\r\n0\r\ngrpc-status: 0\r\n\r\n"
)
RELEASED = threading.Event()


def serve(peer: Peer) -> None:
    """Answers by the method's name."""
    while (message := peer.read_request()) is not None:
        if message.target.endswith(b"/Late"):
            RELEASED.wait(DEADLINE)
            return
        if message.target.endswith(b"/Cut"):
            peer.send(OK[: OK.index(b"0\r\ngrpc-status")])
            RELEASED.wait(DEADLINE)
            return
        peer.send(OK)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    limit = {"type": "ExtensionRef", "extensionRef": {
        "group": make.EDGE, "kind": "RateLimitFilter", "name": "limit"}}  # fmt: skip
    limited = {"type": "Global", "global": {"rules": [{"limit": {"requests": 0, "unit": "Hour"}}]}}
    rules = [
        make.rule("origin", matches=[make.path("/ok")]),
        make.rule("empty", matches=[make.path("/empty")]),
        make.rule("refused", matches=[make.path("/refused")]),
        make.rule("missing", matches=[make.path("/missing")]),
        make.rule("origin", matches=[make.path("/limited")], filters=[limit]),
        make.rule("origin", matches=[make.path("/short")], timeouts={"request": "100ms"}),
    ]
    with ScriptedOrigin(serve) as origin:
        objects = [
            make.route("all", rules),
            *make.service("origin", [("127.0.0.1", origin.port)]),
            *make.service("empty", []),
            *make.service("refused", [("127.0.0.1", free_port())]),
            {"apiVersion": f"{make.EDGE}/v1alpha1", "kind": "RateLimitFilter",
             "metadata": {"name": "limit", "namespace": "default"}, "spec": limited},
        ]  # fmt: skip
        with Site(objects) as running:
            yield running
        RELEASED.set()


@pytest.fixture(scope="module")
def channel(site: Site) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(
        f"127.0.0.1:{site.port}", [("grpc.enable_retries", 0), ("grpc.enable_http_proxy", 0)]
    ) as opened:
        yield opened


def call(channel: grpc.Channel, method: str, timeout: float = DEADLINE) -> bytes:
    """One message there, one back, both as bytes."""
    answer: bytes = channel.unary_unary(method)(b"hello", timeout=timeout)
    return answer


def refused(channel: grpc.Channel, method: str, timeout: float = DEADLINE) -> Any:
    """How a call ends that does not succeed."""
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, method, timeout)
    return caught.value


def test_a_call(channel: grpc.Channel) -> None:
    assert call(channel, "/ok/Call") == b"ok"


@pytest.mark.parametrize(
    ("method", "code", "said"),
    [
        ("/nowhere/Call", grpc.StatusCode.UNIMPLEMENTED, "no route takes this call"),
        ("/empty/Call", grpc.StatusCode.UNAVAILABLE, "no healthy endpoint"),
        ("/refused/Call", grpc.StatusCode.UNAVAILABLE, "the backend could not be reached"),
        (
            "/missing/Call",
            grpc.StatusCode.UNKNOWN,
            "the route or its backend is refused by its configuration",
        ),
        ("/short/Late", grpc.StatusCode.DEADLINE_EXCEEDED, "the backend did not answer in time"),
        ("/short/Cut", grpc.StatusCode.DEADLINE_EXCEEDED, "the backend did not answer in time"),
    ],
)
def test_statuses(channel: grpc.Channel, method: str, code: grpc.StatusCode, said: str) -> None:
    error = refused(channel, method)
    assert (error.code(), error.details()) == (code, said)


def test_the_answer_is_one_head(site: Site) -> None:
    """Trailers-Only: END_STREAM is on it, and no body was announced that is not there."""
    with H2Client(site.port) as client:
        fields = [("content-type", "application/grpc"), ("te", "trailers")]
        number = client.ask(fields, end=False, method="POST", path="/nowhere/Call")
        answer = client.finish(number)
        assert (answer.status, answer.body, answer.trailers, answer.ended) == (200, b"", [], True)
        assert answer.value(b"grpc-status") == b"12"
        assert answer.value(b"content-type") == b"application/grpc"
        client.body(number, bytes(5))  # what it still sends hurts nobody
        assert client.get(path="/nowhere").status == 404
