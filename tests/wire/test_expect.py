"""Expect: 100-continue with the body held back (RFC 9110 10.1.1)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.scenes import objects_for
from wire.harness.site import Site

HEAD = b"POST %b HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin) -> Iterator[Site]:
    objects = objects_for(origin.port, matches=[make.path("/ok")])
    with Site(objects, http={"bodySize": 1000}) as running:
        yield running


def read_interim(client_bytes: bytes) -> bytes:
    """The one interim answer."""
    assert client_bytes.startswith(b"HTTP/1.1 100 ") and client_bytes.endswith(b"\r\n\r\n")
    return client_bytes


@pytest.mark.parametrize("chunked", [False, True])
def test_the_proxy_asks_for_the_body(chunked: bool, site: Site, origin: RecordingOrigin) -> None:
    """100 comes before the body, the backend gets a request without Expect, the client one final answer."""
    origin.take()
    with site.client() as client:
        client.expect("POST")
        head = HEAD % (b"/ok", 5)
        body = b"hello"
        if chunked:
            head = head.replace(b"Content-Length: 5", b"Transfer-Encoding: chunked")
            body = b"5\r\nhello\r\n0\r\n\r\n"
        client.send(head)
        first = client.sock.recv(4096)
        read_interim(first)
        client.responses += client.reader.feed(first)
        client.send(body)
        answer = client.read_response()
        assert answer.status == 200 and [item.status for item in answer.interim] == [100]
        assert client.request("GET", "/ok/next").status == 200
    origin.turn()
    message = origin.take().messages[0]
    assert message.body == b"hello" and message.value(b"expect") is None


@pytest.mark.parametrize(("target", "length", "status"), [(b"/none", 5, 404), (b"/ok", 5000, 413)])
def test_a_refusal_needs_no_body(
    target: bytes, length: int, status: int, site: Site, origin: RecordingOrigin
) -> None:
    """The final answer comes at once instead of 100: the client is spared its body."""
    origin.take()
    with site.client() as client:
        client.expect("POST")
        client.send(HEAD % (target, length))
        answer = client.read_response()
        assert answer.status == status and not answer.interim
    origin.turn()
    assert origin.take().messages == []


def test_body_behind_a_refusal_is_never_a_request(site: Site, origin: RecordingOrigin) -> None:
    """A client that sends the body all the same: it is dropped, or the connection ends."""
    origin.take()
    smuggled = b"GET /ok/smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    with site.client() as client:
        client.expect("POST")
        client.send(HEAD % (b"/none", len(smuggled)))
        assert client.read_response().status == 404
        client.expect("GET")
        client.send(smuggled + b"GET /ok/after HTTP/1.1\r\nHost: a\r\n\r\n")
        found = client.read_to_end(0.5) if not client.responses else client.responses
        assert [item.body for item in found] in ([], [b"/ok/after"])
    origin.turn()
    assert [m.target for m in origin.take().messages if m.target != b"/ok/after"] == []
