"""Endpoints that fail are left out for a while, never more than half of them; application errors do not count."""

from __future__ import annotations

from origin.answers import response
from origin.recording import RecordingOrigin
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
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


def test_health_is_shared_by_all_routes() -> None:
    """What one route learned about an endpoint another route need not learn again."""
    bad = Counting()
    with ScriptedOrigin(bad) as first, RecordingOrigin() as second:
        endpoints = [("127.0.0.1", first.port), ("127.0.0.1", second.port)]
        rules = [make.rule("origin", matches=[make.path("/a")]), make.rule("origin")]
        objects = [make.route("all", rules), *make.service("origin", endpoints)]
        with shared(objects) as site:
            for _ in range(60):
                site.ask("GET", "/a")
            before = bad.count
            assert all(site.ask("GET", "/b").status == 200 for _ in range(40))
            assert bad.count == before


def test_at_most_half_of_a_set_is_left_out() -> None:
    """Two endpoints, both failing: one at least is always asked."""
    bad, worse = Counting(), Counting()
    with ScriptedOrigin(bad) as first, ScriptedOrigin(worse) as second:
        with shared(objects_for(first.port, second.port)) as site:
            ask_many(site, 60)
            assert bad.count + worse.count == 60, "requests were refused without a try"


def test_single_endpoint_is_never_left_out() -> None:
    """Everything out would be nothing left: panic, use all."""
    bad = Counting()
    with ScriptedOrigin(bad) as origin, shared(objects_for(origin.port)) as site:
        ask_many(site, 20)
        assert bad.count == 20


def test_answers_of_the_application_are_no_failures() -> None:
    """5xx that a backend answers itself say nothing about its health here."""
    with (
        RecordingOrigin(lambda message: response(b"", 500)) as first,
        RecordingOrigin() as second,
        shared(objects_for(first.port, second.port)) as site,
    ):
        ask_many(site, 80)
        first.turn()
        second.turn()
        assert len(first.take().messages) > 20 and len(second.take().messages) > 20
