"""Thousands of clients that send their bodies slowly: everybody else is served as if they were not there."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress

import pytest

from origin.recording import RecordingOrigin
from wire.harness.proc import descriptors
from wire.harness.scenes import objects_for
from wire.harness.site import Site

SLOW = {
    "drip": b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx",
    "large": b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000\r\n\r\n" + b"x" * 20000,
    "stall": b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 20000,
    "chunk": b"POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
}
UPLOADS = (40_000, 200_000, 3_000_000)  # bytes: the last is more than a worker gathers of one


@pytest.mark.parametrize(
    ("count", "kind"),
    [(1200, "stall"), *(pytest.param(3000, kind, marks=pytest.mark.heavy) for kind in SLOW)],
)
def test_slow_posters_starve_nobody(count: int, kind: str) -> None:
    """There are more of them than a worker has connections to the backend: GETs, small and large uploads all pass."""
    with RecordingOrigin() as origin, descriptors(count * 2 + 500), ExitStack() as stack:
        objects = objects_for(origin.port, timeouts={"request": "300s"})
        site = stack.enter_context(Site(objects))
        assert site.ask().status == 200
        posters = []
        for _ in range(count):
            poster = stack.enter_context(socket.create_connection(("127.0.0.1", site.port)))
            poster.sendall(SLOW[kind])
            posters.append(poster)

        def there() -> float:
            gone = site.metric("edgefast_pending_refused_total")
            gone += site.metric("edgefast_bodies_gave_way_total")  # a second is over soon
            return site.metric("edgefast_requests_active") + gone

        site.wait_until(lambda: there() >= count, "slow posters")
        for number in range(60):
            with site.client() as client:
                assert client.request("GET", "/").status == 200, number
                assert client.request("POST", "/small", body=b"small").status == 200, number
            if number % 10 == 0:
                for poster in posters:
                    with suppress(OSError):  # it gave way
                        poster.send(b"x" if kind != "chunk" else b"1\r\nx\r\n")

        def passes(size: int) -> bool:
            with site.client() as client:
                return client.request("POST", "/large", body=b"b" * size).status == 200

        assert all(passes(size) for size in UPLOADS[:-1])
        site.wait_until(lambda: passes(UPLOADS[-1]), "sign that the others do not come")
        timeouts = site.metric("edgefast_request_timeouts_total")
        assert timeouts <= site.metric("edgefast_bodies_gave_way_total"), "nobody else waits"
        for poster in posters:
            poster.close()
