"""A WebSocket's way through a proxy, as far as a drain is concerned: a backend that switches and echoes, a client."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from origin.scripted import Peer, ScriptedOrigin
from proxy.command import Object
from wire.harness import objects as make

_UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"


def _echo(peer: Peer) -> None:
    if peer.read_some():
        peer.send(b"HTTP/1.1 101 Switching Protocols\r\n" + _UPGRADE + b"\r\n")
        while data := peer.read_some():
            peer.send(data)


def tunnel_backend() -> ScriptedOrigin:
    return ScriptedOrigin(_echo)


def tunnel_objects(port: int, backend: ScriptedOrigin) -> list[Object]:
    """Objects that lead to the backend."""
    return [
        make.gateway_class(),
        make.gateway("edge", [make.listener(port)]),
        *make.service("echo", [(backend.host, backend.port)]),
        make.route("web", [make.rule("echo")], parent="edge"),
    ]


class Tunnel:
    """The client's side."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sock.sendall(b"GET / HTTP/1.1\r\nHost: x.test\r\n" + _UPGRADE + b"\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            assert (byte := self._sock.recv(1)), head
            head += byte
        assert b" 101 " in head, head

    def says(self, text: bytes) -> bool:
        """Whether what is sent comes back."""
        self._sock.sendall(text)
        return self._sock.recv(len(text)) == text

    def wait_for_end(self) -> None:
        try:
            assert self._sock.recv(1) == b""
        except ConnectionResetError:
            pass  # aborted, which is what a deadline may do


@contextmanager
def tunnel(port: int) -> Iterator[Tunnel]:
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        yield Tunnel(sock)
