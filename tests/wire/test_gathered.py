"""Bodies that stop in the middle while they are gathered: what they hold is there for those that come."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from origin.answers import answer_target
from origin.message import RequestReader
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.site import Site

PLACES = 10  # of 1024 connections, with bodyShare 1
BODY = 1 << 20  # bytes: bodyBuffer's default
STOPPED = 43  # with three fourths of a body: all that is gathered of one cluster, but for 400 KB
HEAD = b"POST /%b HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"


def serve(peer: Peer) -> None:
    """`/hold` is answered before its body has come, and stays; the rest when it is complete."""
    reader = RequestReader()
    while data := peer.read_some():
        for message in reader.feed(data):
            peer.send(answer_target(message))
        if bytes(reader.rest).startswith(b"POST /hold "):
            peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
            peer.stopping.wait()
            return


def test_bodies_that_stopped_make_room_for_one_that_comes() -> None:
    """All places are held for good, and all memory for gathering by clients that sent most of a body: uploads pass."""
    with ScriptedOrigin(serve) as origin, ExitStack() as stack:
        objects = [
            make.route("all", [make.rule("origin", timeouts={"request": "300s"})]),
            *make.service("origin", [("127.0.0.1", origin.port)]),
        ]
        site = stack.enter_context(Site(objects, http={"bodyShare": 1}))

        def begin(target: bytes, sent: int) -> socket.socket:
            client = stack.enter_context(socket.create_connection(("127.0.0.1", site.port)))
            client.settimeout(60)
            client.sendall(HEAD % (target, BODY) + b"x" * sent)
            return client

        for _ in range(PLACES):
            holder = begin(b"hold", 20_000)
            assert holder.recv(1), "its answer has begun: it keeps its place"
        received = "edgefast_downstream_received_bytes_total"
        before = site.metric(received)
        stopped = [begin(b"stop", BODY * 3 // 4) for _ in range(STOPPED)]
        site.wait_until(
            lambda: site.metric(received) >= before + STOPPED * BODY * 3 // 4, "their bodies"
        )
        assert site.metric("edgefast_bodies_gave_way_total") == 0, "there was room"

        def passes() -> bool:
            with site.client(deadline=5) as client:  # one that is denied waits for a place: no good
                return client.request("POST", "/up", body=b"b" * BODY).status == 200

        site.wait_until(passes, "sign that the others stopped")
        assert site.metric("edgefast_bodies_gave_way_total") >= 1
        refused = stopped[0].recv(1000)
        assert refused.startswith(b"HTTP/1.1 408 "), refused
        assert site.metric("edgefast_requests_active") >= PLACES
