"""An endpoint that fails is left out, in a process. The rules: core/upstream/test_ejection and test_outliers."""

from __future__ import annotations

from origin.recording import RecordingOrigin
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.responses import Response
from wire.harness.scenes import objects_for
from wire.harness.site import Site, shared


class Counting:
    """Resets every connection behind its request, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, peer: Peer) -> None:
        if peer.read_request() is not None:
            self.count += 1
            peer.reset()


def ask_many(site: Site, count: int) -> list[Response]:
    return [site.ask() for _ in range(count)]


def test_failing_endpoint_is_left_out() -> None:
    """Five failures in a row, and the other endpoint gets everything."""
    bad = Counting()
    with ScriptedOrigin(bad) as first, RecordingOrigin() as second:
        with shared(objects_for(first.port, second.port)) as site:
            failed = sum(item.status != 200 for item in ask_many(site, 100))
            assert failed == bad.count and 1 <= failed <= 5
            assert all(item.status == 200 for item in ask_many(site, 50))
