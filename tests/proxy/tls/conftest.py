"""Servers of a test, closed and checked afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from core.ticket_ring import make_ring
from edgefast.proxy.tls.server import ServerPort
from proxy.tls.site import Server

Serve = Callable[[ServerPort], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server of a port."""
    made: list[Server] = []

    def start(port: ServerPort) -> Server:
        made.append(Server(port))
        return made[-1]

    yield start
    for server in made:
        server.close()


@pytest.fixture(scope="session")
def tickets() -> None:
    """Keys of session tickets, for contexts that are made after it."""
    make_ring()
