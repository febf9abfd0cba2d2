"""What slow clients of HTTP/2 may hold of a worker's memory together: 32 MiB, each address as much as is free, whatever `bufferBytes` gives."""

from __future__ import annotations

import select
import threading
from dataclasses import dataclass, field

from origin.message import RequestReader
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import H2Client

REFUSED, CANCEL = 7, 8
MIB = 1 << 20
HELD = 32 * MIB
ANSWER = 160 * MIB
KERNEL = 24 * MIB  # at most, of both sockets' buffers on the way
FULL = 1.0  # seconds without room in the origin's socket
CEILING = 30.0  # seconds, against hangs


@dataclass
class Sender:
    """The origin: /large is an answer that nobody has room for."""

    sent: int = 0
    waits: threading.Event = field(default_factory=threading.Event)

    def serve(self, peer: Peer) -> None:
        """A few bytes for each request but that one."""
        reader, data = RequestReader(), peer.read_some()
        while data:
            for message in reader.feed(data):
                if message.target == b"/large":
                    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % ANSWER)
                    self.send_large(peer)
                else:
                    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
            data = peer.read_some()

    def send_large(self, peer: Peer) -> None:
        """As much as is taken; says when that ends, or when there is no more."""
        piece = bytes(MIB)
        room = select.poll()  # not select(): a process of many tests has descriptors above 1,024
        room.register(peer.sock, select.POLLOUT)
        while self.sent < ANSWER and not peer.stopping.is_set():
            if not room.poll(FULL * 1000):
                self.waits.set()
                continue
            try:
                self.sent += peer.sock.send(piece[: ANSWER - self.sent])
            except ConnectionError:
                break
        self.waits.set()


def outcome(site: Site) -> int | None:
    """Of a request on a connection of its own: the code that its stream is reset with, None when it is served."""
    with H2Client(site.port) as client:
        answer = client.get()
        assert answer.reset is not None or answer.status == 200
        return answer.reset


def test_answers_that_nobody_takes_have_one_budget() -> None:
    sender = Sender()
    with ScriptedOrigin(sender.serve) as origin:
        objects = objects_for(origin.port)
        with Site(objects, http={"bufferBytes": "1Gi"}) as site:
            refused = site.metric("edgefast_http2_streams_refused_total")
            with H2Client(site.port, window=False) as stalled:
                number = stalled.ask(path="/large")
                # The backend waits, with most of its answer.
                assert sender.waits.wait(CEILING)
                assert HELD // 4 < sender.sent <= HELD // 2 + KERNEL
                # Whoever holds more than is free is refused more, before a backend is asked, and for as long as it likes.
                for _ in range(110):
                    assert stalled.finish(stalled.ask()).reset == REFUSED
                assert site.metric("edgefast_http2_streams_refused_total") == refused + 110
                assert not stalled.goaways
                # Nobody else is, not even at the same address.
                assert outcome(site) is None and site.ask().status == 200
                # What is given up is free for others.
                stalled.frames.reset_stream(number, CANCEL)
                stalled.flush()
                again = stalled.streams[stalled.ask()]
                stalled.read(lambda: again.status != 0 or again.reset is not None)
                assert again.status == 200
