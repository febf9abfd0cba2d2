"""The loads of a soak: what each client does, once, and how often.

In: a port set and a journal. Out: requests in the journal. Each is one connection, or a few, and ends by itself; whoever runs it again
and again is soak.py. Anything but the answer that is due is a failure.
"""

from __future__ import annotations

import base64
import itertools
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from wire.grpc.backend import CEILING, open_channel
from wire.harness.client import Client, build_request
from wire.http2.client import H2Client
from wire.soak.journal import Journal

NAME, CALLS = "a.test", "calls.test"
USER, WORD = "somebody", "a word"
PAUSE = 0.01  # seconds between two requests of a client: the machine is for others, too
UPGRADE = [
    ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]  # fmt: skip


@dataclass
class Target:
    """Where to, and for how long."""

    plain: int
    tls: int
    tcp: int
    udp: int
    make_context: Callable[[list[str]], ssl.SSLContext]
    journal: Journal
    over: threading.Event
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    #: Of each thread: its client's context and last session.
    own: threading.local = field(default_factory=threading.local)

    def connect(self, *, tls: bool) -> Client:
        """An HTTP/1.1 connection, by TLS without a session."""
        if tls:
            return Client(("127.0.0.1", self.tls), tls=self.context, sni=NAME)
        return Client(("127.0.0.1", self.plain))

    @property
    def context(self) -> ssl.SSLContext:
        """This thread's."""
        if not hasattr(self.own, "context"):
            self.own.context, self.own.session = self.make_context(["http/1.1"]), None
        made: ssl.SSLContext = self.own.context
        return made

    @property
    def http2_context(self) -> ssl.SSLContext:
        """The same for HTTP/2."""
        if not hasattr(self.own, "http2"):
            self.own.http2 = self.make_context(["h2"])
        made: ssl.SSLContext = self.own.http2
        return made

    def pause(self) -> bool:
        """A moment; False: it is over."""
        return not self.over.wait(PAUSE)


def _ask(client: Client) -> None:
    answer = client.request("GET", "/soak", NAME)
    assert (answer.status, answer.body) == (200, b"/soak"), answer


def _keep(target: Target, kind: str, *, tls: bool) -> None:
    with target.connect(tls=tls) as client:
        for _ in range(200):
            _ask(client)
            target.journal.note(kind)
            if not target.pause():
                return


def kept(target: Target) -> None:
    """Two hundred requests on a connection."""
    _keep(target, "kept", tls=False)


def kept_tls(target: Target) -> None:
    """The same by TLS."""
    _keep(target, "kept_tls", tls=True)


def new(target: Target) -> None:
    """A connection for a request with a body."""
    with target.connect(tls=False) as client:
        answer = client.request("POST", "/new", NAME, body=b"x" * 5000)
        assert (answer.status, answer.body) == (200, b"/new"), answer
    target.journal.note("new")


def new_tls(target: Target) -> None:
    """A full handshake for a request."""
    with target.connect(tls=True) as client:
        _ask(client)
    target.journal.note("new_tls")


def resumed(target: Target) -> None:
    """A connection with the session of the one before."""
    context, session = target.context, target.own.session
    with socket.create_connection(("127.0.0.1", target.tls), 30) as raw:
        with context.wrap_socket(raw, server_hostname=NAME, session=session) as sock:
            sock.sendall(build_request("GET", "/soak", NAME, [("Connection", "close")]))
            answer = b""
            while data := sock.recv(4096):
                answer += data
            assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"/soak"), answer
            target.own.session = sock.session
            target.journal.note("resumed", resumed=bool(sock.session_reused))


def aborted(target: Target) -> None:
    """Somebody who leaves in the middle, each time another one, by a reset."""
    beginnings = (
        (target.plain, b"GET / HT"),
        (target.plain, build_request("POST", "/", NAME, body=b"x" * 100)[:-50]),
        (target.plain, build_request("GET", "/", NAME) * 3),
        (target.tls, b"\x16\x03\x01\x02\x00\x01"),
        (target.tls, b""),
        (target.plain, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00"),
    )
    port, said = beginnings[next(target.numbers) % len(beginnings)]
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        sock.sendall(said)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    target.journal.note("aborted")


def tunnel(target: Target) -> None:
    """A switch of protocols, plain or by TLS, and an echo through it."""
    with target.connect(tls=next(target.numbers) % 2 == 0) as client:
        client.expect("GET")
        client.send(build_request("GET", "/tunnel", NAME, UPGRADE))
        assert client.read_response().status == 101
        for number in range(100):
            said = b"%d " % number * 50
            client.send(said)
            heard = bytes(client.reader.rest)
            client.reader.rest.clear()
            while len(heard) < len(said):
                data = client.sock.recv(65536)
                assert data, "the tunnel ended"
                heard += data
            assert heard == said
            target.journal.note("tunnel")
            if not target.pause():
                return


def http2(target: Target) -> None:
    """Eight streams at once, ten times, plain or by TLS."""
    tls = target.http2_context if next(target.numbers) % 2 else None
    port = target.plain if tls is None else target.tls
    with H2Client(port, tls=tls, sni=NAME if tls else None) as client:
        for _ in range(10):
            numbers = [client.ask(authority=NAME, path="/soak") for _ in range(8)]
            for number in numbers:
                stream = client.finish(number)
                assert (stream.status, stream.body) == (200, b"/soak"), stream
            target.journal.note("http2", len(numbers))
            if not target.pause():
                return


def calls(target: Target) -> None:
    """Calls of gRPC on a connection: one message, and many from the server."""
    with open_channel(target.plain, CALLS) as channel:
        for number in range(20):
            said = b"%d" % number
            assert channel.unary_unary("/test.Calls/Echo")(said, timeout=CEILING) == said
            many = [*channel.unary_stream("/test.Calls/Many")(b"20", timeout=CEILING)]
            assert many == [b"%d" % one for one in range(20)]
            target.journal.note("calls", 2)
            if not target.pause():
                return


def guarded(target: Target) -> None:
    """A good password, a bad one and none; the address is allowed."""
    good, bad = (base64.b64encode(f"{USER}:{word}".encode()).decode() for word in (WORD, "other"))
    with target.connect(tls=True) as client:
        for word, status in ((good, 200), (bad, 401), ("", 401)):
            lines = [("Authorization", f"Basic {word}")] if word else []
            assert client.request("GET", "/guarded", NAME, lines).status == status, word
            target.journal.note("guarded")


def limited(target: Target) -> None:
    """Requests that a limit in Redis counts, some of them compressed."""
    with target.connect(tls=False) as client:
        for _ in range(50):
            answer = client.request("GET", "/limited", NAME, [("Accept-Encoding", "gzip")])
            assert answer.status == 200, answer
            target.journal.note("limited")
            if not target.pause():
                return


def tcp(target: Target) -> None:
    """A connection that is passed on unread."""
    with Client(("127.0.0.1", target.tcp)) as client:
        for _ in range(20):
            _ask(client)
            target.journal.note("tcp")
            if not target.pause():
                return


def udp(target: Target) -> None:
    """A client with a session: datagrams and their echoes."""
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(30)
        client.connect(("127.0.0.1", target.udp))
        for number in range(50):
            said = b"%d" % number
            client.send(said)
            heard = client.recv(2048)
            while heard != said:  # an echo of a datagram whose answer came late
                heard = client.recv(2048)
            target.journal.note("udp")
            if not target.pause():
                return


#: How many threads do what.
LOADS: dict[Callable[[Target], None], int] = {
    kept: 3,
    kept_tls: 3,
    new: 1,
    new_tls: 1,
    resumed: 2,
    aborted: 1,
    tunnel: 2,
    http2: 2,
    calls: 1,
    guarded: 1,
    limited: 1,
    tcp: 1,
    udp: 1,
}
