"""How HTTP/2 connections end: GOAWAY twice, nothing lost; idle, silent and late clients; switched off."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from origin.scripted import Peer, ScriptedOrigin
from wire.harness.scenes import objects_for
from wire.harness.site import Site
from wire.http2.client import CEILING, PREFACE, H2Client

LAST = 2**31 - 1


@contextmanager
def serving(script: Any, settings: dict[str, Any] | None = None, **http: Any) -> Iterator[Site]:
    with ScriptedOrigin(script) as origin:
        objects = objects_for(origin.port)
        with Site(objects, http=http, settings={"http2": settings or {}}) as running:
            yield running


def answer(peer: Peer) -> None:
    while peer.read_request():
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def test_most_requests_of_a_connection() -> None:
    """Two GOAWAYs: what is opened between them is served."""
    with serving(answer, {"maxRequestsPerConnection": 3}) as site, H2Client(site.port) as client:
        for _ in range(3):
            assert client.get().status == 200
        client.read(lambda: bool(client.goaways))
        assert client.goaways == [(0, LAST)]
        client.read_to_end()
        assert client.goaways == [(0, LAST), (0, 5)]


def test_drain_loses_nothing() -> None:
    arrived, go = threading.Event(), threading.Event()

    def late(peer: Peer) -> None:
        if peer.read_request():
            arrived.set()
            assert go.wait(CEILING)
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with ScriptedOrigin(late) as origin:
        objects = objects_for(origin.port)
        site = Site(objects, drain_timeout=20)
        site.start()
        try:
            with H2Client(site.port) as client:
                number = client.ask()
                assert arrived.wait(CEILING)
                site.terminate()
                client.read(lambda: bool(client.goaways))
                assert client.goaways == [(0, LAST)]
                go.set()
                assert client.finish(number).body == b"ok"
                client.read_to_end()
                assert {code for code, _ in client.goaways} == {0}
            assert site.exit_status() == 0
        finally:
            site.stop()


def test_idle() -> None:
    with serving(answer, idleTimeout="300ms") as site, H2Client(site.port) as client:
        assert client.get().status == 200
        client.read_to_end()
        assert client.goaways == [(0, 1)]


def test_silent_clients_are_asked() -> None:
    with (
        serving(answer, {"keepalivePing": "100ms"}) as site,
        socket.create_connection(("127.0.0.1", site.port), CEILING) as client,
    ):
        client.sendall(PREFACE + b"\0\0\0\4\0\0\0\0\0")
        data = b""
        while b"\0\0\x08\x06\0\0\0\0\0" not in data:
            data += client.recv(4096)


def test_switched_off() -> None:
    with serving(answer, {"enabled": False}) as site:
        with socket.create_connection(("127.0.0.1", site.port), CEILING) as client:
            client.sendall(PREFACE)
            assert client.recv(4096).startswith(b"HTTP/1.1 505 ")
        assert site.ask().status == 200
