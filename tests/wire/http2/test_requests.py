"""HTTP/2 requests, with prior knowledge: what a backend sees of them, and what comes back."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from origin.message import RequestReader
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import CEILING, PREFACE, H2Client
from wire.http2.programs import installed

LARGE = bytes(range(256)) * 4000


def serve(peer: Peer) -> None:
    """Answers by path."""
    reader, data = RequestReader(), peer.read_some()
    while data:
        for message in reader.feed(data):
            path = message.target.partition(b"?")[0]
            if path == b"/large":
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
            elif path == b"/trailers":
                peer.send(
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n"
                )
            elif path == b"/early":
                peer.send(b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\n")
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            elif path == b"/cut":
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
                return
            else:
                body = message.raw + b"|" + message.body
                head = b"" if message.method == b"HEAD" else body
                peer.send(
                    b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nX-Upper: Y\r\nContent-Length: %d\r\n\r\n"
                    % len(body)
                    + head
                )
        data = peer.read_some()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ScriptedOrigin(serve) as origin:
        objects = objects_for(origin.port)
        with Site(objects, http={"bodySize": "1Mi"}) as running:
            yield running


@pytest.fixture
def client(site: Site) -> Iterator[H2Client]:
    with H2Client(site.port) as opened:
        yield opened


def test_get(client: H2Client) -> None:
    answer = client.get([("x-a", "b"), ("cookie", "a=1"), ("cookie", "b=2")], path="/x?y")
    assert (answer.status, answer.ended) == (200, True)
    head = answer.body.lower()
    assert head.startswith(b"get /x?y http/1.1\r\nhost: a\r\n")
    assert b"\r\nx-a: b\r\n" in head and b"\r\ncookie: a=1; b=2\r\n" in head
    assert b"connection" not in head and b"transfer-encoding" not in head
    names = [name for name, _ in answer.fields]
    assert b"x-upper" in names and b"connection" not in names
    assert answer.value(b"server") == b"edgefast"


def test_head_has_no_body(client: H2Client) -> None:
    answer = client.get(method="HEAD")
    assert (answer.status, answer.body) == (200, b"") and int(answer.value(b"content-length") or 0)


@pytest.mark.parametrize("sized", [True, False])
def test_post(client: H2Client, sized: bool) -> None:
    body = b"x" * 200_000
    fields = [("content-length", str(len(body)))] if sized else []
    number = client.ask(fields, method="POST", end=False)
    client.body(number, body)
    answer = client.finish(number)
    assert answer.status == 200 and answer.body.endswith(b"|" + body)
    assert (b"transfer-encoding: chunked" in answer.body.lower()) is not sized


def test_interim_and_trailers(client: H2Client) -> None:
    assert client.get(path="/early").interim == [103]
    answer = client.get([("te", "trailers")], path="/trailers")
    assert answer.body == b"abc" and answer.trailers == [(b"x-sum", b"7")]
    number = client.ask(method="POST", end=False)
    client.body(number, b"abc", end=False)
    client.trail(number, [("x-sum", "9")])
    assert client.finish(number).status == 200


def test_continue(client: H2Client) -> None:
    number = client.ask(
        [("expect", "100-continue"), ("content-length", "3")], method="POST", end=False
    )
    client.read(lambda: bool(client.streams[number].interim))
    assert client.streams[number].interim == [100]
    client.body(number, b"abc")
    assert client.finish(number).status == 200


def test_answer_before_the_body_ends(client: H2Client) -> None:
    """The whole answer, then a moment for the client to end its half, then RST_STREAM(NO_ERROR); the connection stays open."""
    length = [("content-length", "2000000")]
    reset = client.ask(length, method="POST", end=False)
    answer = client.finish(reset)
    assert (answer.status, answer.ended, answer.reset) == (413, True, None)
    ended = client.ask(length, method="POST", end=False)
    assert client.finish(ended).status == 413
    client.streams[ended].ended = False  # its body continues anyway, beyond its window
    client.body(ended, bytes(2_000_000))
    client.read(lambda: answer.reset is not None)
    assert answer.reset == 0
    assert client.get().status == 200
    assert client.streams[ended].reset is None


def test_curl_reads_an_answer_before_the_body_ends(site: Site, tmp_path: Path) -> None:
    """curl 7.88 drops what comes with a reset."""
    body = tmp_path / "body"
    body.write_bytes(bytes(3_000_000))
    command = [installed("curl", "curl"), "--silent", "--show-error", "--noproxy", "*"]
    command += ["--http2-prior-knowledge", "--max-time", "20", "--write-out", "%{http_code} "]
    url = f"http://127.0.0.1:{site.port}/"
    bare = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    for options in (["--header", "expect:", "--data-binary", f"@{body}"], ["-T", str(body)]):
        done = subprocess.run(
            [*command, *options, url], env=bare, capture_output=True, text=True, timeout=60
        )
        assert (done.stdout, done.stderr) == ("413 ", "")


def test_answer_that_is_cut(client: H2Client) -> None:
    answer = client.get(path="/cut")
    assert answer.status == 200 and answer.reset == 2 and not answer.ended
    assert client.get().status == 200


def test_own_answers(client: H2Client) -> None:
    assert client.get(method="TRACE").status == 405
    assert client.get(method="FOO").status == 501
    assert client.get(method="CONNECT", scheme="", path="").status == 405
    assert client.get(authority="a,b").status == 400
    assert client.get(scheme="https").status == 400
    assert client.get(path="/" + "a" * 9000).status == 414
    assert client.get([(f"x-{i}", "a") for i in range(120)]).status == 431
    assert client.get([("x-a", "a" * 33000)]).status == 431
    assert client.get().status == 200


@pytest.mark.parametrize(
    "fields",
    [
        [("X-Upper", "a")],
        [("x-a", "b\r\nc: d")],
        [("x-a", "b\x00c")],
        [("connection", "close")],
        [("transfer-encoding", "chunked")],
        [("te", "gzip")],
        [("host", "b")],
        [("x a", "b")],
        [("content-length", "5")],
        [("content-length", "0"), ("content-length", "0")],
    ],
    ids=repr,
)
def test_malformed_costs_its_stream_alone(client: H2Client, fields: list[tuple[str, str]]) -> None:
    answer = client.get(fields)
    assert (answer.status, answer.reset) == (0, 1)
    assert client.get().status == 200


def test_body_must_have_its_length(client: H2Client) -> None:
    for sent in (b"ab", b"abcd"):
        number = client.ask([("content-length", "3")], method="POST", end=False)
        client.body(number, sent)
        assert client.finish(number).reset == 1
    assert client.get().status == 200


def test_preface_in_any_pieces(site: Site) -> None:
    for split in range(1, len(PREFACE)):
        with H2Client(site.port, start=False) as client:
            client.frames.initiate_connection()
            data = client.frames.data_to_send()
            client.send(data[:split])
            client.socket.settimeout(0.01)
            with pytest.raises(TimeoutError):
                client.socket.recv(1)
            client.socket.settimeout(20)
            client.send(data[split:])
            assert client.get().status == 200


def test_http1_is_served_on_the_same_port(site: Site) -> None:
    for method in ("GET", "PUT", "PROPFIND", "PATCH"):
        assert site.ask(method).status == 200


def test_cancel_reaches_the_backend() -> None:
    arrived, gone = threading.Event(), threading.Event()

    def hold(peer: Peer) -> None:
        peer.read_request()
        arrived.set()
        while peer.read_some():
            pass
        gone.set()

    with ScriptedOrigin(hold) as origin:
        objects = objects_for(origin.port)
        with Site(objects) as site, H2Client(site.port) as client:
            number = client.ask()
            assert arrived.wait(CEILING)
            client.frames.reset_stream(number, 8)
            client.flush()
            assert gone.wait(CEILING)
