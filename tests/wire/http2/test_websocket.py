"""WebSockets over HTTP/2 (RFC 8441): an extended CONNECT is an upgrade for the backend, and bytes both ways after that."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import pytest

from origin.scripted import Peer, ScriptedOrigin
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import H2Client, Stream

TUNNEL = [
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "http"),
    (":authority", "a"),
    (":path", "/"),
    ("sec-websocket-version", "13"),
]
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def talk(peer: Peer) -> None:
    """Switches and echoes; /lie accepts another key, /no refuses, /bye says something and ends,
    /last answers when the other side has ended."""
    message = peer.read_request()
    if message is None:
        return
    assert message.method == b"GET" and (message.value(b"upgrade") or b"") == b"websocket"
    key = message.value(b"sec-websocket-key") or b""
    assert len(base64.b64decode(key)) == 16
    if message.target == b"/no":
        peer.send(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")
        return
    key = b"x" if message.target == b"/lie" else key
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
    peer.send(
        b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Accept: %b\r\nSec-WebSocket-Protocol: chat\r\n\r\n" % accept
    )
    if message.target == b"/last":
        said = b""
        while data := peer.read_some():
            said += data
        peer.send(b"you said " + said)
        return
    if message.target == b"/bye":
        peer.send(b"bye")
        return
    while data := peer.read_some():
        peer.send(data)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ScriptedOrigin(talk) as origin:
        objects = objects_for(origin.port)
        with Site(objects) as running:
            yield running


def connect(client: H2Client, path: str) -> int:
    return client.ask(
        [("sec-websocket-version", "13")],
        method="CONNECT",
        protocol="websocket",
        path=path,
        end=False,
    )


def test_echo(site: Site) -> None:
    with H2Client(site.port) as client:
        client.read(lambda: client.frames.remote_settings.enable_connect_protocol == 1)
        number = connect(client, "/")
        tunnel = client.streams[number]
        client.read(lambda: bool(tunnel.status))
        assert tunnel.status == 200 and tunnel.value(b"sec-websocket-protocol") == b"chat"
        assert tunnel.value(b"sec-websocket-accept") is None and tunnel.value(b"upgrade") is None
        sent = b""
        for size in (1, 1000, 100_000):
            client.body(number, bytes(size), end=False)
            sent += bytes(size)
            client.read(lambda: len(tunnel.body) >= len(sent))  # noqa: B023
        assert tunnel.body == sent
        client.frames.end_stream(number)
        client.flush()
        assert client.finish(number).ended


def test_backend_ends_it(site: Site) -> None:
    """The client's half is its own to end: browsers that are reset drop what came just before. One that does not is reset in a moment."""
    with H2Client(site.port) as client:
        numbers = [connect(client, "/bye") for _ in range(2)]
        kept, ended = [client.finish(number) for number in numbers]
        for tunnel in (kept, ended):
            assert (tunnel.status, tunnel.body, tunnel.ended) == (200, b"bye", True)
        client.frames.end_stream(numbers[1])
        client.flush()
        client.read(lambda: kept.reset is not None)
        assert (kept.reset, ended.reset) == (0, None)


def test_client_ends_its_half(site: Site) -> None:
    """The backend hears of it, and what it says then is the client's: browsers end theirs with a WebSocket's close frame."""
    with H2Client(site.port) as client:
        number = connect(client, "/last")
        tunnel = client.streams[number]
        client.read(lambda: bool(tunnel.status))
        client.body(number, b"goodbye", end=True)
        client.finish(number)
        assert (tunnel.body, tunnel.ended, tunnel.reset) == (b"you said goodbye", True, None)


def test_refused(site: Site) -> None:
    with H2Client(site.port) as client:
        tunnel = client.finish(connect(client, "/no"))
        assert (tunnel.status, tunnel.body) == (403, b"no")


def test_key_that_was_not_ours(site: Site) -> None:
    with H2Client(site.port) as client:
        tunnel = client.finish(connect(client, "/lie"))
        assert tunnel.status == 0 and tunnel.reset == 2


def test_nothing_is_lost_before_it_is_a_tunnel(site: Site) -> None:
    """Bytes for a tunnel that there is not are no bytes of it later."""
    with H2Client(site.port) as client:
        bare = client.ask(
            method="CONNECT", protocol="websocket", end=False
        )  # no version of WebSocket
        assert client.finish(bare).reset == 1
        for early in (None, b"EARLY", b""):
            number = client.frames.get_next_available_stream_id()
            client.streams[number] = Stream()
            client.frames.send_headers(number, TUNNEL, end_stream=early is None)
            if early is not None:
                client.frames.send_data(number, early, end_stream=not early)
            client.flush()  # in one write: the backend cannot have answered
            assert client.finish(number).reset == (8 if early == b"" else 1)


def test_other_protocols(site: Site) -> None:
    with H2Client(site.port) as client:
        number = client.ask(method="CONNECT", protocol="connect-udp", end=False)
        assert client.finish(number).status == 501


def test_a_tunnel_has_no_body() -> None:
    """A length would have the backend wait for bytes that the next request on its connection brings."""
    seen: list[bytes] = []

    def answer(peer: Peer) -> None:
        while data := peer.read_some():
            seen.append(data)
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with ScriptedOrigin(answer) as origin:
        objects = objects_for(origin.port)
        with Site(objects) as site, H2Client(site.port) as client:
            for length in ("1000", "0"):
                number = client.ask(
                    [("sec-websocket-version", "13"), ("content-length", length)],
                    method="CONNECT",
                    protocol="websocket",
                    path="/tunnel",
                    end=False,
                )
                assert client.finish(number).reset == 1
            assert not seen
            assert client.get().body == b"ok"
