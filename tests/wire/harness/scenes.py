"""Small scenes that several test files play: one Service behind everything, a port that swallows connects, usual scripts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from origin.scripted import Peer
from wire.harness import objects as make

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def blackhole() -> Iterator[int]:
    """A port where connecting never completes: its accept queue is full and nobody accepts."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def objects_for(*ports: int, **rule: Any) -> list[make.Object]:
    """Everything to one Service with these endpoints."""
    rules = [make.rule("origin", **rule)]
    endpoints = [("127.0.0.1", port) for port in ports]
    return [make.route("all", rules), *make.service("origin", endpoints)]


def reset_at_once(peer: Peer) -> None:
    """RST instead of an answer, whatever was read before."""
    peer.reset()


def close_at_once(peer: Peer) -> None:
    """FIN instead of an answer."""
    peer.close()


def hang(peer: Peer) -> None:
    """Reads and never answers."""
    peer.read_to_end()
