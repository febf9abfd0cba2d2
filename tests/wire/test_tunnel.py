"""Upgrades: WebSocket and others become a tunnel after 101, and stay plain HTTP without it (RFC 9110 7.8)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from origin.message import Message, RequestReader
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.client import Client, build_request
from wire.harness.site import Site

ASK = [
    ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]  # fmt: skip
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)


def talk(peer: Peer) -> None:
    """Switches and echoes; /refuse answers 403, /after 200, /hello speaks first, /bye ends at once."""
    reader, data = RequestReader(), peer.read_some()
    while data:
        for message in reader.feed(data):
            if message.target not in (b"/refuse", b"/after"):
                switch(peer, message, bytes(reader.rest))
                return
            status = b"403 No" if message.target == b"/refuse" else b"200 OK"
            peer.send(b"HTTP/1.1 %b\r\nContent-Length: 5\r\n\r\nplain" % status)
        data = peer.read_some()


def switch(peer: Peer, message: Message, early: bytes) -> None:
    """Answers 101 and goes on as an echo; `early` came right behind the request."""
    assert (message.value(b"connection") or b"").lower() == b"upgrade", message
    assert (message.value(b"upgrade") or b"").lower() == b"websocket", message
    peer.send(SWITCH + (b"hello" if message.target == b"/hello" else b"") + early)
    while message.target != b"/bye" and (data := peer.read_some()):
        peer.send(data)


@pytest.fixture(scope="module")
def origin() -> Iterator[ScriptedOrigin]:
    with ScriptedOrigin(talk) as running:
        yield running


@pytest.fixture(scope="module")
def site(origin: ScriptedOrigin) -> Iterator[Site]:
    rules = [
        make.rule("origin", matches=[make.path("/short")], timeouts={"request": "1s"}),
        make.rule("origin"),
    ]
    objects = [make.route("all", rules), *make.service("origin", [("127.0.0.1", origin.port)])]
    with Site(objects) as running:
        yield running


def open_tunnel(client: Client, target: str = "/ws", early: bytes = b"") -> None:
    """Handshake, with bytes right behind the request."""
    client.expect("GET")
    client.send(build_request("GET", target, headers=ASK) + early)
    answer = client.read_response()
    assert answer.status == 101
    assert (answer.value("connection") or "").lower() == "upgrade"
    assert (answer.value("upgrade") or "").lower() == "websocket"
    assert answer.value("sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert answer.value("content-length") is None and answer.value("transfer-encoding") is None


def test_bytes_go_both_ways(site: Site) -> None:
    """Whatever they are, at once, in order."""
    with site.client() as client:
        open_tunnel(client)
        for data in (
            b"\x81\x05hello",
            b"\x00\xff\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"x" * 70000,
        ):
            client.send(data)
            assert client.read_raw(len(data)) == data


def test_the_backend_ends_it(site: Site) -> None:
    """The client sees the end."""
    with site.client() as client:
        open_tunnel(client, "/bye")
        assert client.read_raw(1) == b"" and client.ended == "eof"


def test_a_lot_of_bytes_with_backpressure(site: Site) -> None:
    """8 MiB there and back while the client sends before it reads."""
    data = bytes(range(256)) * 32768
    with site.client() as client:
        open_tunnel(client)
        sender = threading.Thread(target=client.sock.sendall, args=(data,))
        sender.start()
        got = bytearray()
        while len(got) < len(data):
            piece = client.sock.recv(1 << 20)
            assert piece
            got += piece
        sender.join()
        assert bytes(got) == data


def test_route_timeout_does_not_end_a_tunnel(site: Site) -> None:
    """Upgrades are exempt."""
    with site.client() as client:
        open_tunnel(client, "/short")
        began = time.monotonic()
        while time.monotonic() - began < 1.3:  # the route's is a second
            client.send(b"still here")
            assert client.read_raw(10) == b"still here"


def test_smuggling_behind_a_refused_upgrade(site: Site, origin: ScriptedOrigin) -> None:
    """Bytes behind a refused upgrade never reach the backend raw: each request passes the gate."""
    before = len(origin.connections)
    bad = b"GET /after HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n"
    with site.client() as client:
        client.expect("GET", "GET")
        client.send(build_request("GET", "/refuse", headers=ASK) + bad)
        assert client.read_response().status == 403
        assert [item.status for item in client.read_to_end(1)] in ([], [400])
    for peer in origin.connections[before:]:
        assert b"Content-Length :" not in peer.received


def test_many_tunnels(site: Site) -> None:
    """Fifty at once stay apart."""
    clients = [site.client() for _ in range(50)]
    for client in clients:
        open_tunnel(client)
    for number, client in enumerate(clients):
        client.send(b"%05d" % number)
    for number, client in enumerate(clients):
        assert client.read_raw(5) == b"%05d" % number
        client.close()
    site.check_no_leak()
