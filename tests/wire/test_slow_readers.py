"""Thousands of clients that do not read their answers: everybody else is served as if they were not there."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from origin.large import LargeOrigin
from wire.harness.proc import descriptors
from wire.harness.scenes import objects_for
from wire.harness.site import Site

CONNECTIONS = 1024  # to a backend, of a worker
ASK = (
    b"GET /large/100000000 HTTP/1.1\r\nHost: a\r\n\r\n"  # bytes: more than sockets and queues hold
)


@pytest.mark.parametrize(
    ("count", "reads"),
    [
        (1300, True),
        *(pytest.param(3 * CONNECTIONS, reads, marks=pytest.mark.heavy) for reads in (False, True)),
    ],
)
def test_slow_readers_starve_nobody(count: int, reads: bool) -> None:
    """There are more of them than a worker has connections to the backend."""
    with LargeOrigin() as origin, descriptors(count * 4 + 500), ExitStack() as stack:
        objects = objects_for(origin.port, timeouts={"request": "300s"})
        site = stack.enter_context(Site(objects))
        readers = []
        for _ in range(count):
            reader = stack.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", site.port))
            reader.sendall(ASK)
            readers.append(reader)

        def seen() -> float:
            gone = site.metric("edgefast_answers_gave_way_total")
            gone += site.metric("edgefast_pending_refused_total")
            return gone + site.metric("edgefast_requests_active")

        site.wait_until(lambda: seen() >= count, "slow readers")
        # The queue for connections is theirs as long as some of them wait in it.
        site.wait_until(
            lambda: site.metric("edgefast_requests_active") <= CONNECTIONS, "all had their turn"
        )
        refused = site.metric("edgefast_pending_refused_total")
        for number in range(60):
            if reads and number % 10 == 0:
                for reader in readers:
                    try:
                        reader.recv(2048, socket.MSG_DONTWAIT)
                    except OSError:  # it has nothing, or gave way
                        pass
            with site.client() as client:
                assert client.request("GET", "/").status == 200, number
                assert client.request("POST", "/small", body=b"small").status == 200, number
        assert site.metric("edgefast_pending_refused_total") == refused
        assert site.metric("edgefast_request_timeouts_total") == 0
        assert site.metric("edgefast_requests_active") <= CONNECTIONS


@pytest.mark.heavy
def test_a_full_queue_of_one_address_is_nobody_elses() -> None:
    """They come faster than they give way: those who wait for a connection are theirs, and make room for another address."""
    count = 3 * CONNECTIONS
    with LargeOrigin() as origin, descriptors(count * 4 + 500), ExitStack() as stack:
        objects = objects_for(origin.port, timeouts={"request": "300s"})
        site = stack.enter_context(Site(objects))
        readers = [stack.enter_context(socket.socket()) for _ in range(count)]
        for reader in readers:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", site.port))
        for reader in readers:
            reader.sendall(ASK)
        for number in range(20):
            with site.client(source="127.0.0.2") as client:
                assert client.request("GET", "/").status == 200, number
        assert site.metric("edgefast_pending_refused_total") > 0, "the queue was full"
