"""What an HTTP/2 client may cost: each bound of docs/reference/http2.md attacked, its counter read, and others served meanwhile."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hpack import Encoder

from origin.message import RequestReader
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import H2Client

CALM, PROTOCOL, SETTINGS_TIMEOUT = 11, 1, 4
HEAD = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]


def serve(peer: Peer) -> None:
    """Some body for each request; /large a megabyte."""
    reader, data = RequestReader(), peer.read_some()
    while data:
        for message in reader.feed(data):
            size = 1 << 20 if message.target == b"/large" else 100
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
        data = peer.read_some()


@contextmanager
def serving(**http: str) -> Iterator[Site]:
    with ScriptedOrigin(serve) as origin:
        objects = objects_for(origin.port)
        with Site(objects, http=http) as running:
            yield running


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(streamIdleTimeout="2s", headTimeout="1s") as running:
        yield running


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Any frame at all."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def breaches(site: Site, reason: str) -> float:
    return site.metric("edgefast_http2_breaches_total", reason=reason)


def settled(site: Site) -> H2Client:
    """A client whose SETTINGS have been exchanged."""
    client = H2Client(site.port)
    assert client.get().status == 200
    return client


def expect_calm(site: Site, client: H2Client, reason: str, before: float, code: int = CALM) -> None:
    """GOAWAY with the reason, the end, a count; and somebody else is served."""
    client.read_to_end()
    assert client.goaways and client.goaways[-1][0] == code, client.goaways
    assert breaches(site, reason) == before + 1
    site.wait_until(lambda: f"http2 {reason}" in site.access_log, "the log has its word")
    with H2Client(site.port) as other:
        assert other.get().status == 200


def test_resets(site: Site) -> None:
    """CVE-2023-44487: opened and taken back at once."""
    before = breaches(site, "resets")
    with settled(site) as client:
        encoder, data = Encoder(), b""
        for number in range(3, 3 + 2 * 1200, 2):
            data += frame(1, 5, number, encoder.encode(HEAD)) + frame(3, 0, number, b"\0\0\0\x08")
        client.send(data)
        expect_calm(site, client, "resets", before)


def test_resets_of_ours(site: Site) -> None:
    """CVE-2025-8671: requests that we have to reset."""
    before = breaches(site, "resets")
    with settled(site) as client:
        encoder = Encoder()
        for first in range(3, 3 + 2 * 1200, 100):  # fewer at once than may be open
            pongs = client.pongs
            for number in range(first, first + 100, 2):
                client.send(frame(1, 5, number, encoder.encode([*HEAD, ("te", "gzip")])))
            client.send(frame(6, 0, 0, bytes(8)))
            client.read(lambda: client.pongs > pongs)  # noqa: B023
            if client.gone:
                break
        expect_calm(site, client, "resets", before)


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_continuations(site: Site, size: int) -> None:
    """CVE-2024-27316: a head in ever more frames. nghttp2 may say first that it is too much."""
    before = breaches(site, "continuations")
    with settled(site) as client:
        block = Encoder().encode([*HEAD, ("x-a", "b" * 12000)], huffman=False)
        data = frame(1, 1, 3, block[:1])
        pieces = [block[at : at + size] for at in range(1, len(block), size)] if size else [b""]
        client.send(data + b"".join(frame(9, 0, 3, piece) for piece in pieces[:20]))
        expect_calm(site, client, "continuations", before)


def test_head_that_is_many_times_too_large(site: Site) -> None:
    """HPACK bomb: one large field in the table, named again and again in a byte each."""
    before = breaches(site, "head")
    with settled(site) as client:
        encoder = Encoder()
        block = encoder.encode([*HEAD, ("x-a", "b" * 3500)])
        again = encoder.encode([("x-a", "b" * 3500)])
        assert len(again) == 1
        client.send(frame(1, 5, 3, block + again * 200))
        expect_calm(site, client, "head", before)


def test_crumbs(site: Site) -> None:
    """As well with crumbs of Cookie: counted one by one, before they are joined."""
    with settled(site) as client:
        answer = client.get([("cookie", "a")] * 3000, path="/")
        assert answer.status == 431 or client.goaways
        assert client.gone or client.get().status == 200


def test_settings(site: Site) -> None:
    before = breaches(site, "settings")
    with settled(site) as client:
        client.send(frame(4, 0, 0, b"\0\x99\0\0\0\0" * 33))
        expect_calm(site, client, "settings", before)


@pytest.mark.parametrize(("kind", "payload"), [(6, bytes(8)), (4, b"")])
def test_acks_that_nobody_reads(site: Site, kind: int, payload: bytes) -> None:
    """CVE-2019-9512, -9515: answers pile up when they are asked for faster than they can be sent."""
    before = breaches(site, "acks")
    with settled(site) as client:
        client.send(frame(kind, 0, 0, payload) * 400)
        expect_calm(site, client, "acks", before)


def test_empty_frames(site: Site) -> None:
    """CVE-2019-9518: bytes without content, here priorities."""
    before = breaches(site, "overhead")
    with settled(site) as client:
        piece = frame(2, 0, 1, b"\0\0\0\0\x10") * 5000
        for _ in range(140):
            client.send(piece)
            if client.gone:
                break
        expect_calm(site, client, "overhead", before)


def test_empty_data(site: Site) -> None:
    """DATA frames without a byte, on a request that is open: a thousand, and a few each second."""
    before = breaches(site, "overhead")
    with settled(site) as client:
        client.send(frame(1, 4, 3, Encoder().encode([(":method", "POST"), *HEAD[1:]])))
        client.send(frame(0, 0, 3) * 5000)
        expect_calm(site, client, "overhead", before)


def test_window_updates(site: Site) -> None:
    """CVE-2019-9511: windows opened byte by byte."""
    before = breaches(site, "updates")
    with settled(site) as client:
        client.send(frame(8, 0, 0, b"\0\0\0\x01") * 400)
        expect_calm(site, client, "updates", before)


def test_answer_that_nobody_takes(site: Site) -> None:
    """Windows that stay shut end the stream, not the connection; a WINDOW_UPDATE is no progress."""
    before = breaches(site, "stall")
    with H2Client(site.port, window=False) as client:
        number = client.ask(path="/large")
        answer = client.streams[number]
        client.read(lambda: answer.reset is not None)
        assert 60000 <= len(answer.body) < 1 << 20 and not answer.ended
        assert breaches(site, "stall") == before + 1
        site.wait_until(lambda: "http2 stall" in site.access_log, "the log has its word")
        assert client.get(path="/").status in (0, 200)  # the connection's window is shut as well


def test_head_that_never_ends(site: Site) -> None:
    with settled(site) as client:
        client.send(frame(1, 1, 3, Encoder().encode(HEAD)))
        client.read_to_end()
        assert client.goaways[-1][0] == CALM


def test_numbers_do_not_come_back(site: Site) -> None:
    with settled(site) as client:
        encoder = Encoder()
        client.send(frame(1, 5, 7, encoder.encode(HEAD)) + frame(1, 5, 5, encoder.encode(HEAD)))
        client.read_to_end()
        assert client.goaways[-1][0] == PROTOCOL


def test_more_streams_than_announced(site: Site) -> None:
    """Before our SETTINGS can be known they are refused, and can go again; a hundred of those are enough."""
    refused = site.metric("edgefast_http2_streams_refused_total")
    before = breaches(site, "refused")
    with H2Client(site.port, start=False) as client:
        client.frames.initiate_connection()
        client.frames.send_headers(1, [*HEAD, ("content-length", "9")])
        data, encoder = client.frames.data_to_send(), client.frames.encoder
        for number in range(3, 2 * 230, 2):
            data += frame(1, 4, number, encoder.encode([*HEAD, ("content-length", "9")]))
        client.send(data)
        expect_calm(site, client, "refused", before)
    assert site.metric("edgefast_http2_streams_refused_total") == refused + 101
