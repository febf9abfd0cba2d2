"""Trailers on the wire: through a real proxy both ways, over plain connections that are kept, and to a mirror (docs/reference/http1.md)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.message import Message, RequestReader
from origin.recording import RecordingOrigin
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.client import build_request
from wire.harness.site import Site

SENT = b"5\r\nhello\r\n0\r\nGrpc-Status: 0\r\nx-forwarded-for: 1.2.3.4\r\nlast: \r\n\r\n"
PASSED = ((b"grpc-status", b"0"), (b"last", b""))


def talk(peer: Peer) -> None:
    """Answers each request with a body and trailers."""
    reader, data = RequestReader(), peer.read_some()
    while data:
        for message in reader.feed(data):
            GOT.append(message)
            peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + SENT)
        data = peer.read_some()


GOT: list[Message] = []


@pytest.fixture(scope="module")
def mirror() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def site(mirror: RecordingOrigin) -> Iterator[Site]:
    with ScriptedOrigin(talk) as origin:
        rule = make.rule(
            "origin",
            filters=[
                {"type": "RequestMirror", "requestMirror": {"backendRef": make.backend_ref("copy")}}
            ],
        )
        objects = [
            make.route("all", [rule]),
            *make.service("origin", [("127.0.0.1", origin.port)]),
            *make.service("copy", [("127.0.0.1", mirror.port)]),
        ]
        with Site(objects) as running:
            yield running


def test_both_ways_and_to_the_mirror(site: Site, mirror: RecordingOrigin) -> None:
    """Request and response have theirs; a client that does not ask gets none; the connection goes on."""
    GOT.clear()
    head = build_request(
        "POST", "/t", headers=[("TE", "trailers"), ("Transfer-Encoding", "chunked")]
    )
    head = head.replace(b"Content-Length: 0\r\n", b"")
    with site.client() as client:
        client.expect("POST", "GET")
        client.send(head + SENT)
        answer = client.read_response()
        assert (answer.status, answer.body, tuple(answer.trailers)) == (200, b"hello", PASSED)
        client.send(build_request("GET", "/next"))
        answer = client.read_response()
        assert (answer.status, answer.body, answer.trailers) == (200, b"hello", [])
    first, second = GOT
    assert (first.body, first.trailers, second.trailers) == (b"hello", PASSED, ())
    copies: dict[bytes, object] = {}

    def copied() -> bool:
        copies.update((one.target, one.trailers) for one in mirror.take().messages)
        return len(copies) == 2

    site.wait_until(copied, "the copies")
    assert copies == {b"/t": PASSED, b"/next": ()}
