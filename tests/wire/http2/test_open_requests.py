"""What open requests hold of a worker's memory, heads that cost nothing on the wire: counted, shared, and given up stream by stream."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from hpack import Encoder

from wire.harness import objects as make
from wire.harness.site import Site
from wire.http2.client import H2Client
from wire.http2.frames import frame

CEILING = 30.0  # seconds, against hangs
MOST = 1000  # streams of a connection
MANY = {"http2": {"maxConcurrentStreams": MOST}}
OTHER = "127.0.0.2"
FIELD = (
    "x-a",
    "v" * 3700,
)  # named eight times it makes a head of 30 KB: 64 KiB of memory, as it came and as it goes on
HALF = (16 << 20) // (
    60 << 10
) + 1  # such requests that one address has memory for: 4 KiB of each are counted as a stream


def large(numbers: range, method: str, *, end: bool) -> bytes:
    """Requests with that head; a POST announces a body."""
    encoder, data = Encoder(), b""
    fields = [(":method", method), (":scheme", "http"), (":path", "/a"), (":authority", "a")]
    fields += [FIELD] * 8 + ([] if end else [("content-length", "9")])
    for number in numbers:
        data += frame(1, 5 if end else 4, number, encoder.encode(fields))
    return data


@contextmanager
def serving(**settings: Any) -> Iterator[Site]:
    """/a goes to a backend that says nothing, /b nowhere."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as silent:
        objects = [
            make.route("all", [make.rule("origin", matches=[make.path("/a")])]),
            *make.service("origin", [silent.getsockname()]),
        ]
        with Site(objects, settings=MANY | settings) as site:
            yield site


def opened(site: Site) -> float:
    """Requests that are open, or were."""
    gone = site.metric("edgefast_bodies_gave_way_total")
    return site.metric("edgefast_requests_active") + gone


def refused(site: Site) -> float:
    return site.metric("edgefast_http2_streams_refused_total")


def breached(site: Site) -> bool:
    return site.metric("edgefast_http2_breaches_total", reason="memory") > 0


def test_requests_have_the_budget_of_answers() -> None:
    """One address has half of the memory, whatever its heads cost on the wire; all of it comes back."""
    with serving() as site:
        for round_ in range(2):
            before = refused(site)
            with H2Client(site.port) as client, H2Client(site.port, source=OTHER) as other:
                client.send(large(range(1, 1 + 2 * 400, 2), "POST", end=False))
                site.wait_until(
                    lambda before=before: opened(site) + refused(site) - before >= 400,
                    "requests",
                    CEILING,
                )
                assert site.metric("edgefast_requests_active") == HALF, round_
                assert other.get([FIELD] * 8, path="/b").status == 404
            site.wait_until(lambda: site.metric("edgefast_requests_active") == 0, "end", CEILING)


def test_requests_give_way_by_stream() -> None:
    """At the ceiling those that bring no body are reset, no connection ends, and who holds little keeps what it has."""
    with serving() as site, ExitStack() as stack:
        other = stack.enter_context(H2Client(site.port, source=OTHER))
        kept = other.streams[other.ask([FIELD] * 8, path="/a")]
        site.wait_until(lambda: opened(site) == 1, "request", CEILING)
        # One after the other: connections of one address that begin beside each other share its half, and none reaches the ceiling.
        for count in (1, 2):
            client = stack.enter_context(H2Client(site.port))
            assert client.get(path="/b").status == 404
            client.send(large(range(3, 3 + 2 * HALF, 2), "POST", end=False))
            site.wait_until(
                lambda count=count: breached(site) or opened(site) + refused(site) > count * HALF,
                "requests",
                CEILING,
            )
        site.wait_until(lambda: breached(site), "those that give way", CEILING)
        assert site.metric("edgefast_connections_active") >= 3
        assert other.get([FIELD] * 8, path="/b").status == 404
        assert kept.reset is None
        assert site.ask(target="/b").status == 404


def test_proxies_that_nobody_names_stand_alone() -> None:
    """With hops and no networks any peer may speak for many clients: each connection is one that shares, not each address."""
    with serving(clientAddress={"trustedHops": 1}) as site, ExitStack() as stack:
        for count in (1, 2):
            client = stack.enter_context(H2Client(site.port))
            client.send(large(range(1, 1 + 2 * 400, 2), "POST", end=False))
            site.wait_until(
                lambda count=count: opened(site) + refused(site) >= count * 400,
                "requests",
                CEILING,
            )
        assert site.metric("edgefast_requests_active") == HALF + HALF // 2
