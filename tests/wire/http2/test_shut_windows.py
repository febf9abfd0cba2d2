"""Ends of answers that a shut window keeps back, as it keeps bytes: they have the same deadline."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from h2.settings import SettingCodes

from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.site import Site
from wire.http2.client import CEILING, H2Client, Stream
from wire.http2.test_websocket import connect, talk

CANCEL = 8
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = threading.Event()  # the end of /later may come


def serve(peer: Peer) -> None:
    """/a/later: four bytes, then the end when it may; /a/trailers: no body, but nobody knows before what is behind it; else none at all."""
    while (message := peer.read_request()) is not None:
        if message.target == b"/a/later":
            peer.send(HEAD + b"4\r\nbody\r\n")
            assert LAST.wait(CEILING)
            peer.send(b"0\r\n\r\n")
        elif message.target == b"/a/trailers":
            peer.send(HEAD + b"0\r\nGrpc-Status: 0\r\n\r\n")
        elif message.target == b"/a/body":
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")
        else:
            peer.send(HEAD + b"0\r\n\r\n")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ScriptedOrigin(serve) as origin, ScriptedOrigin(talk) as talking:
        objects = [
            make.route(
                "all",
                [
                    make.rule("origin", matches=[make.path("/a")]),
                    make.rule("talking", matches=[make.path("/talk")]),
                ],
            ),
            *make.service("origin", [("127.0.0.1", origin.port)]),
            *make.service("talking", [("127.0.0.1", talking.port)]),
        ]
        with Site(objects, http={"streamIdleTimeout": "1s"}) as running:
            yield running


def shut(site: Site, window: int = 0) -> H2Client:
    """A client whose streams have so little window, and never more."""
    client = H2Client(site.port, start=False, window=False)
    client.frames.initiate_connection()
    client.frames.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
    client.flush()
    return client


def expect_reset(site: Site, client: H2Client, stream: Stream, before: float) -> None:
    client.read(lambda: stream.ended or stream.reset is not None)
    assert (stream.status, stream.ended, stream.reset) == (200, False, CANCEL)
    assert site.metric("edgefast_http2_breaches_total", reason="stall") == before + 1
    site.wait_until(lambda: site.metric("edgefast_requests_active") == 0, "its end")


@pytest.mark.parametrize("path", ["/a", "/a/trailers"])
def test_answers_without_a_body(site: Site, path: str) -> None:
    before = site.metric("edgefast_http2_breaches_total", reason="stall")
    with shut(site) as client:
        expect_reset(site, client, client.streams[client.ask(path=path)], before)


def test_an_end_that_comes_later(site: Site) -> None:
    before = site.metric("edgefast_http2_breaches_total", reason="stall")
    LAST.clear()
    with shut(site, 4) as client:
        stream = client.streams[client.ask(path="/a/later")]
        client.read(lambda: stream.body == b"body")
        LAST.set()
        expect_reset(site, client, stream, before)


def test_the_end_of_a_tunnel(site: Site) -> None:
    before = site.metric("edgefast_http2_breaches_total", reason="stall")
    with shut(site) as client:
        number = connect(client, "/talk")
        stream = client.streams[number]
        client.read(lambda: stream.status != 0)
        client.frames.end_stream(number)
        client.flush()
        expect_reset(site, client, stream, before)


def test_answers_of_ours_have_as_much_time(site: Site) -> None:
    """As one of a backend, which came before."""
    with shut(site) as client:
        theirs = client.streams[client.ask(path="/a/body")]
        client.read(lambda: theirs.status == 200)
        ours = client.streams[client.ask(method="CONNECT", protocol="connect-udp", end=False)]
        client.read(lambda: ours.reset is not None)
        assert (ours.status, ours.reset, theirs.reset) == (501, CANCEL, CANCEL)
