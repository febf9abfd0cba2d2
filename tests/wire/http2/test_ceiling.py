"""All of the memory is held and nobody is late: those give way who have taken nothing, not the one that takes what it holds."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress

from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.site import Site
from wire.http2.client import H2Client
from wire.http2.test_open_requests import MANY, large, opened, refused

CEILING = 30.0  # seconds, against hangs
ANSWER = 64 << 20
TAKEN = 16 << 10  # bytes that the good client takes now and then


def serve(peer: Peer) -> None:
    """An answer that is more than a client may hold."""
    while peer.read_request() is not None:
        with suppress(OSError):
            peer.sock.settimeout(None)
            peer.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % ANSWER)
            peer.sock.sendall(bytes(ANSWER))


def test_who_takes_its_answer_keeps_it() -> None:
    """It holds half of the memory; what others hold, more in all and less each, are requests that wait for a backend."""
    with ScriptedOrigin(serve) as origin, ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4096))
        objects = [
            make.route(
                "all", [make.rule("origin"), make.rule("silent", matches=[make.path("/a")])]
            ),
            *make.service("origin", [("127.0.0.1", origin.port)]),
            *make.service("silent", [silent.getsockname()]),
        ]
        http = {"bufferBytes": "16Mi"}
        site = stack.enter_context(Site(objects, http=http, settings=MANY))
        good = stack.enter_context(H2Client(site.port, window=False, source="127.0.0.2"))
        stream = good.streams[good.ask(path="/large")]
        good.read(lambda: len(stream.body) >= 65535)

        def come(count: int) -> bool:
            """So many requests are here, or gave way, or were refused; the good client takes a little meanwhile."""
            before = len(stream.body)
            if stream.reset is None:
                for number in (0, *good.streams):
                    good.frames.increment_flow_control_window(TAKEN, number or None)
                good.flush()
            good.read(lambda: len(stream.body) >= before + TAKEN or stream.reset is not None)
            return opened(site) + refused(site) >= count or gave_way() > 0

        def gave_way() -> float:
            return site.metric("edgefast_http2_breaches_total", reason="memory")

        sources = ["127.0.0.1", "127.0.0.3", "127.0.0.3", "127.0.0.4", "127.0.0.5"]
        for count, source in enumerate(sources, 1):
            client = stack.enter_context(H2Client(site.port, source=source))
            client.send(large(range(1, 1 + 2 * 300, 2), "GET", end=True))
            site.wait_until(lambda count=count: come(1 + count * 300), "requests", CEILING)
        assert gave_way() > 0
        assert come(0) and stream.reset is None and not good.gone and not good.goaways
