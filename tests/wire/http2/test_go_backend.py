"""Go's net/http as a backend, in clear text and over TLS: bodies, trailers, interim answers, resets, early answers, restarts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from proxy.steady import Steady
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.client import Client
from wire.harness.go_programs import go_server
from wire.harness.site import Site
from wire.http2.asking import PROTOCOLS, ask
from wire.http2.client import H2Client
from wire.http2.keeper import Keepers, Wants

pytestmark = pytest.mark.timeout(600)  # Go may have to build it

SIZES = (0, 1, 65_535, 65_536, 3_000_001)
INSIDE = "inside.test"
STREAMS = 3  # at a time on a connection: fewer than its clients have


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A proxy in front of a backend with TLS; `test_restarts` has one without TLS."""
    folder, authority = tmp_path_factory.mktemp("go"), Authority()
    pair = authority.issue([INSIDE])
    options: list[str] = []
    for name, data in (("cert", pair.certificate), ("key", pair.key)):
        (folder / name).write_bytes(data)
        options += [f"-{name}", str(folder / name)]
    with go_server("serves", *options) as server:
        with Site(leading_to(server.port, authority)) as site:
            yield site.port
            assert site.metric("edgefast_upstream_http2_connections_total") > 0


def leading_to(port: int, authority: Authority | None = None) -> list[make.Object]:
    """Objects for a proxy whose one backend is there."""
    speaks = "" if authority else "kubernetes.io/h2c"
    objects = [
        make.route("all", [make.rule("origin")]),
        *make.service("origin", [("127.0.0.1", port)], app_protocol=speaks),
    ]
    if authority:
        objects += [
            make.config_map("ca", {"ca.crt": authority.pem.decode()}),
            make.tls_policy("origin", INSIDE),
        ]
    return objects


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bodies(port: int, protocol: str) -> None:
    for size in SIZES:
        body = bytes(range(256)) * (size // 256) + bytes(size % 256)
        got = ask(port, protocol, "/echo", body)
        assert (got.status, len(got.body), got.body == body) == (200, size, True), size
        assert got.fields[b"x-protocol"] == b"HTTP/2.0"
        told = b"-1" if protocol == "chunked" and size else b"%d" % size
        assert protocol == "h2" or got.fields[b"x-length"] == told
        assert len(ask(port, protocol, f"/size/{size}").body) == size


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_trailers(port: int, protocol: str) -> None:
    for size in (0, 5, 100_000):
        got = ask(port, protocol, "/trailers", b"x" * size)
        assert (got.status, len(got.body)) == (200, size)
        # In HTTP/1.1 there is no place for them behind a body with a length, which Go gives to short ones.
        if protocol == "h2" or b"content-length" not in got.fields:
            assert got.trailers == {b"x-bytes": b"%d" % size, b"x-more": b"a b"}
    assert protocol == "h2" or b"content-length" not in got.fields


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_of_all_kinds(port: int, protocol: str) -> None:
    hinted = ask(port, protocol, "/hints")
    assert (hinted.status, hinted.body, hinted.interim) == (200, b"hinted", [103])
    assert ask(port, protocol, "/nothing").status == 204
    assert ask(port, protocol, "/none").status == 404
    assert ask(port, protocol, "/reset").status == 502
    cut = ask(port, protocol, "/cut")
    # A stream that is reset at once is not given a head any more.
    assert cut.status in ((0, 200) if protocol == "h2" else (200,)) and not cut.whole


@pytest.mark.parametrize("size", [10, 50_000, 5_000_000])
def test_an_answer_before_its_request_is_over(port: int, size: int) -> None:
    """The answer is there whole, however much of the body the backend has not looked at."""
    for _ in range(2):
        with H2Client(port) as client:
            number = client.ask(method="POST", path="/early", end=False)
            client.body(number, bytes(size))
            stream = client.finish(number)
            assert (stream.status, stream.body, stream.ended) == (413, b"no", True)
            assert client.get(path="/nothing").status == 204
        got = ask(port, "chunked", "/early", bytes(size))
        assert (got.status, got.body) == (413, b"no")


def test_a_body_that_waits_for_100(port: int) -> None:
    with Client(("127.0.0.1", port)) as client:
        client.expect("POST")
        client.send(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        )
        assert client.sock.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"hello")
        answer = client.read_response()
        assert (answer.status, answer.body) == (200, b"hello")
    with H2Client(port) as client2:
        number = client2.ask([("expect", "100-continue")], method="POST", path="/echo", end=False)
        stream = client2.streams[number]
        client2.read(lambda: 100 in stream.interim)
        client2.body(number, b"hello")
        assert client2.finish(number).body == b"hello"


def test_clients_that_leave(port: int) -> None:
    """In the middle of a body and of an answer: the others on the backend's connection go on."""
    for number in range(6):
        with H2Client(port, window=False) as client:
            asked = client.ask(path="/size/1000000")
            stream = client.streams[asked]
            client.read(lambda: bool(stream.body))  # noqa: B023
            if number % 2:
                client.frames.reset_stream(asked, 8)
                client.flush()
                assert client.get(path="/nothing").status == 204
        with Client(("127.0.0.1", port)) as one:
            one.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhello")
            one.reset()
    assert ask(port, "h2", "/size/10").body == bytes(10)


def test_restarts() -> None:
    """Rolled as pods are: the next one is there before the last one is told to go, and its GOAWAY loses nothing, whoever asks."""
    with ExitStack() as stack:
        server = stack.enter_context(go_server("serves", f"-streams={STREAMS}"))
        site = stack.enter_context(Site(leading_to(server.port)))
        wants = [
            Wants(port=site.port, path="/echo", method="POST", body=bytes(30_000)),
            Wants(port=site.port, path="/late"),
        ]
        with Keepers(*wants, *wants) as tally, Steady(site.port, path="/nothing") as load:
            for _ in range(3):
                good = tally.good
                load.more(100)
                site.wait_until(lambda: tally.good > good + 100, "answers")  # noqa: B023
                fresh = stack.enter_context(go_server("serves", f"-streams={STREAMS}"))
                site.use(leading_to(fresh.port))
                server.terminate()
                server.wait()
                server = fresh
            load.more(100)
        assert not tally.failures and not tally.lost, (tally.failures[:5], tally.lost)
        assert not load.failures, load.failures[:5]
        assert {mark[:12] for mark in load.marks} == {"HTTP/1.1 204"}, load.marks
