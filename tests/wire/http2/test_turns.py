"""Many requests in one read: each client has its turn among the others, however many it sends at once."""

from __future__ import annotations

import os
import signal

from frozen import wait_frozen
from wire.harness.site import Site
from wire.http2.client import H2Client
from wire.http2.frames import requests

MANY = 90  # requests; a connection may have 100 open


def test_requests_of_one_read_are_taken_in_turns() -> None:
    """Two connections whose requests lie ready: neither's are all answered before the other's begin."""
    with Site([]) as site, H2Client(site.port) as one, H2Client(site.port) as other:
        for client in (one, other):
            assert client.get(path="/first").status == 404
        (worker,) = site.worker_pids
        os.kill(worker, signal.SIGSTOP)
        try:
            wait_frozen(worker)
            for client, path in ((one, "/one"), (other, "/other")):
                client.send(requests(range(3, 3 + 2 * MANY, 2), path=path))
        finally:
            os.kill(worker, signal.SIGCONT)
        site.wait_until(
            lambda: sum(site.access_log.count(path) for path in ("/one", "/other")) >= 2 * MANY,
            "all lines",
        )
        order = ["/one" in line for line in site.access_log.splitlines() if "/first" not in line]
        changes = sum(a != b for a, b in zip(order, order[1:], strict=False))
        assert changes > 2
