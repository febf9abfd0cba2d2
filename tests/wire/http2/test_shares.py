"""What the clients of a worker share, attacked by one of them: streams, memory for answers, connections to backends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from origin.message import RequestReader
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import H2Client
from wire.http2.frames import requests

CEILING = 30.0  # seconds, against hangs
STREAMS = 10_000  # of a worker
MOST = 1000  # of a connection
ANSWER = 60 << 10
CANCEL = b"\0\0\0\x08"
MANY = {"http2": {"maxConcurrentStreams": MOST}}
OTHER = "127.0.0.2"


def serve(peer: Peer) -> None:
    """An answer that is one read for each request."""
    reader, data = RequestReader(), peer.read_some()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % ANSWER
    while data:
        for _ in reader.feed(data):
            peer.send(head + bytes(ANSWER))
        data = peer.read_some()


@contextmanager
def serving(port: int) -> Iterator[Site]:
    objects = objects_for(port, matches=[make.path("/a")])
    with Site(objects, settings=MANY) as running:
        yield running


def test_streams_that_are_taken_back_ask_nobody() -> None:
    """A reset in the read that its request came in: no backend hears of it."""
    with ScriptedOrigin(serve) as origin, serving(origin.port) as site:
        with H2Client(site.port) as client:
            assert client.get(path="/b").status == 404
            before = site.metric("edgefast_http2_streams_reset_total")
            client.send(requests(range(3, 3 + 2 * 400, 2), CANCEL, path="/a"))
            site.wait_until(
                lambda: site.metric("edgefast_http2_streams_reset_total") == before + 400, "resets"
            )
            # One may be cut in two by the reads.
            assert site.metric("edgefast_upstream_connects_total") <= 2
        with H2Client(site.port) as client:
            assert client.get(path="/a").status == 200


def test_streams_of_a_worker_are_shared() -> None:
    """Requests that never end, on as many connections as it takes: one address has half of them, the next one finds room."""
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4096))
        site = stack.enter_context(serving(silent.getsockname()[1]))
        refused = site.metric("edgefast_http2_streams_refused_total")

        def fill(count: int, source: str) -> None:
            for _ in range(count):
                client = stack.enter_context(H2Client(site.port, source=source))
                assert client.get(path="/b").status in (0, 404)
                numbers = range(3, 3 + 2 * MOST, 2)
                client.send(
                    requests(numbers, end=False, method="POST", path="/a", content_length="9")
                )

        def count() -> tuple[float, float]:
            """Opened, those included that gave way meanwhile, and refused."""
            gone = site.metric("edgefast_bodies_gave_way_total")
            now = site.metric("edgefast_http2_streams_refused_total") - refused
            return site.metric("edgefast_requests_active") + gone, now

        half = STREAMS // 2
        fill(half // MOST + 1, "127.0.0.1")
        site.wait_until(lambda: sum(count()) >= half + MOST, "requests", CEILING)
        assert site.metric("edgefast_requests_active") <= half
        first = count()[1]
        assert first > 0
        fill(1, OTHER)
        site.wait_until(lambda: sum(count()) >= half + 2 * MOST, "requests of another", CEILING)
        assert count()[1] == first
        assert site.ask(target="/b").status == 404


def test_memory_of_a_worker_is_shared() -> None:
    """Answers that nobody takes, more than the worker may hold: who holds most gives way, and who holds little is served."""
    with ScriptedOrigin(serve) as origin, serving(origin.port) as site, ExitStack() as stack:
        slow = stack.enter_context(H2Client(site.port, window=False, source=OTHER))
        kept = slow.streams[slow.ask(path="/a")]
        slow.read(lambda: kept.status != 0)
        again = slow.streams[slow.ask(path="/a")]
        before = site.metric("edgefast_http2_breaches_total", reason="memory")
        for _ in range(2):
            client = stack.enter_context(H2Client(site.port, window=False))
            client.send(requests(range(1, 1 + 2 * MOST, 2), path="/a"))
        site.wait_until(
            lambda: site.metric("edgefast_http2_breaches_total", reason="memory") > before,
            "end of it",
            CEILING,
        )
        site.wait_until(lambda: "http2 memory" in site.access_log, "the log has its word")
        with H2Client(site.port, source=OTHER) as other:
            assert other.get(path="/a").status == 200
        slow.frames.increment_flow_control_window(1 << 20)
        slow.flush()
        slow.read(lambda: (kept.ended and again.ended) or slow.gone)
        assert len(kept.body) == len(again.body) == ANSWER
