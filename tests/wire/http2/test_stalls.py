"""Clients that take nothing: their connections end, and nobody else's do."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from hpack import Encoder

from origin.message import RequestReader
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import PREFACE, H2Client

CEILING = 30.0  # seconds, against hangs
HEAD = [(":method", "GET"), (":scheme", "http"), (":authority", "a")]
LARGE = 8 << 20
MOST = (1 << 31) - 1
STREAMS = 6


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Any frame at all."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def serve(peer: Peer) -> None:
    """/large is more than sockets hold, /slow waits for the end; the rest is a few bytes."""
    peer.sock.settimeout(None)  # it is kept between tests; the origin's end closes it
    reader, data = RequestReader(), peer.read_some()
    while data:
        for message in reader.feed(data):
            if message.target == b"/slow":
                peer.stopping.wait(2.5)  # longer than headTimeout below
            size = LARGE if message.target == b"/large" else 2
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
        data = peer.read_some()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ScriptedOrigin(serve) as origin:
        objects = objects_for(origin.port)
        http = {"streamIdleTimeout": "4s", "headTimeout": "1s"}
        with Site(objects, http=http) as running:
            yield running


def unread(site: Site, frames: bytes) -> socket.socket:
    """A connection with wide windows that has sent `frames`, and whose socket nobody reads."""
    end = socket.socket()
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    end.settimeout(CEILING)
    end.connect(("127.0.0.1", site.port))
    settings = frame(4, 0, 0, struct.pack(">HI", 4, MOST)) + frame(4, 1, 0)
    window = frame(8, 0, 0, struct.pack(">I", MOST - 65535))
    end.sendall(PREFACE + settings + window + frames)
    return end


def ask(encoder: Encoder, number: int, path: str) -> bytes:
    return frame(1, 5, number, encoder.encode([*HEAD, (":path", path)]))


def test_socket_that_nobody_reads(site: Site) -> None:
    """No frame can tell it anything: the connection ends, and its streams are counted once each."""
    stalls = site.metric("edgefast_http2_breaches_total", reason="stall")
    streams = site.metric("edgefast_requests_active")
    encoder = Encoder()
    frames = b"".join(ask(encoder, 1 + 2 * n, "/large") for n in range(STREAMS))
    with unread(site, frames):
        site.wait_until(
            lambda: site.metric("edgefast_requests_active") == streams + STREAMS, "request", CEILING
        )
        open_before = site.metric("edgefast_connections_active")
        site.wait_until(
            lambda: site.metric("edgefast_connections_active") < open_before, "end of it", CEILING
        )
        site.wait_until(
            lambda: site.metric("edgefast_requests_active") == streams, "end of them", CEILING
        )
    counted = site.metric("edgefast_http2_breaches_total", reason="stall") - stalls
    assert 1 <= counted <= STREAMS + 1
    site.wait_until(lambda: "http2 stall" in site.access_log, "the log has its word")


def test_malformed_beside_a_slow_one(site: Site) -> None:
    """A head that nghttp2 refuses itself is over with that: no deadline of it ends the connection."""
    with H2Client(site.port) as client:
        assert client.get().status == 200
        number = client.ask(path="/slow")
        client.send(frame(1, 5, number + 2, Encoder().encode(HEAD)))  # without :path
        assert client.finish(number).status == 200
        assert not client.goaways


def lines(count: int, size: int) -> bytes:
    return b"".join(b"x-h%d: %s\r\n" % (n, b"v" * size) for n in range(count))


@pytest.mark.parametrize(("count", "size"), [(90, 600), (90, 717), (16, 3900)])
def test_answers_with_large_heads(count: int, size: int) -> None:
    """What a backend may say is said, however it is coded on the way."""

    def answer(peer: Peer) -> None:
        while peer.read_request() is not None:
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%b\r\nok" % lines(count, size))

    with ScriptedOrigin(answer) as origin:
        objects = objects_for(origin.port)
        with Site(objects) as large, H2Client(large.port) as client:
            client.frames.decoder.max_header_list_size = 1 << 20
            stream = client.get()
            assert stream.status == 200 and stream.body == b"ok"
            assert stream.value(b"x-h%d" % (count - 1)) == b"v" * size
