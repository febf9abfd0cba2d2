"""Requests that their client brings to a reset (CVE-2025-8671): no backend is asked for them, and each is counted."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hpack import Encoder

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import H2Client
from wire.http2.frames import frame

CALM, PROTOCOL, FLOW, CANCEL = 11, 1, 3, 8
POST = [(":method", "POST"), (":scheme", "http"), (":path", "/a"), (":authority", "a")]
TUNNEL = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    *POST[1:],
    ("sec-websocket-version", "13"),
]
END, ENDS_HEAD = 1, 4


def tunnel(encoder: Encoder, number: int) -> bytes:
    """A tunnel whose client has nothing to say through it."""
    return frame(1, ENDS_HEAD, number, encoder.encode(TUNNEL)) + frame(0, END, number)


def body(encoder: Encoder, number: int, length: int, data: bytes, flags: int) -> bytes:
    fields = [*POST, ("content-length", str(length))]
    return frame(1, ENDS_HEAD, number, encoder.encode(fields)) + frame(0, flags, number, data)


def overflow(encoder: Encoder, number: int) -> bytes:
    """More of a window than there can be."""
    head = frame(1, ENDS_HEAD | END, number, encoder.encode(POST))
    return head + frame(8, 0, number, struct.pack(">I", 2**31 - 1))


def trailers(encoder: Encoder, number: int) -> bytes:
    """Those of an answer."""
    head = frame(1, ENDS_HEAD, number, encoder.encode(POST))
    return head + frame(1, ENDS_HEAD | END, number, encoder.encode([(":status", "200")]))


CASES = {
    "a tunnel that ends before it begins": (tunnel, CANCEL),
    "a longer body": (lambda *to: body(*to, 1, b"ab", 0), PROTOCOL),
    "a longer body that ends": (lambda *to: body(*to, 1, b"ab", END), PROTOCOL),
    "a body where there is none": (lambda *to: body(*to, 0, b"a", 0), PROTOCOL),
    "a shorter body": (lambda *to: body(*to, 3, b"ab", END), PROTOCOL),
    "no body where there is one": (lambda *to: body(*to, 3, b"", END), PROTOCOL),
    "a window": (overflow, FLOW),
    "trailers": (trailers, PROTOCOL),
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with RecordingOrigin() as origin:
        objects = objects_for(origin.port, matches=[make.path("/a")])
        with Site(objects) as running:
            yield running


@pytest.mark.parametrize("case", CASES)
def test_nobody_is_asked(site: Site, case: str) -> None:
    make_request, code = CASES[case]
    before = site.metric("edgefast_upstream_connects_total")
    with H2Client(site.port) as client:
        assert client.get(path="/none").status == 404
        number = client.frames.get_next_available_stream_id()
        client.send(make_request(Encoder(), number))  # in one write
        client.send(frame(6, 0, 0, bytes(8)))
        data = b""
        while frame(6, 1, 0, bytes(8)) not in data:
            data += (more := client.socket.recv(4096))
            assert more
        assert frame(3, 0, number, struct.pack(">I", code)) in data
        assert site.metric("edgefast_upstream_connects_total") == before
    site.wait_until(lambda: site.metric("edgefast_requests_active") == 0, "its end")


def test_they_are_counted(site: Site) -> None:
    before = site.metric("edgefast_http2_breaches_total", reason="resets")
    connects = site.metric("edgefast_upstream_connects_total")
    with H2Client(site.port) as client:
        assert client.get(path="/none").status == 404
        encoder = Encoder()
        for first in range(3, 3 + 2 * 1200, 100):  # fewer at once than may be open
            pongs = client.pongs
            client.send(b"".join(tunnel(encoder, n) for n in range(first, first + 100, 2)))
            client.send(frame(6, 0, 0, bytes(8)))
            client.read(lambda: client.pongs > pongs)  # noqa: B023
            if client.gone:
                break
        client.read_to_end()
        assert client.goaways[-1][0] == CALM
    assert site.metric("edgefast_http2_breaches_total", reason="resets") == before + 1
    # A read may end between a head and what takes it back.
    assert site.metric("edgefast_upstream_connects_total") <= connects + 24
