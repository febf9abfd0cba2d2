"""What is tried again and what never: the table of safe retries (RFC 9110 9.2.2), `retry` of a route, and the budget."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.client import build_request
from wire.harness.ports import free_port
from wire.harness.scenes import OK, blackhole, close_at_once, objects_for, reset_at_once
from wire.harness.site import shared


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "PUT", "DELETE"])
def test_another_endpoint_when_connecting_fails(method: str) -> None:
    """Refused: any method goes to another endpoint, no request is lost."""
    with RecordingOrigin() as origin, shared(objects_for(free_port(), origin.port)) as site:
        for _ in range(20):
            assert site.ask(method, "/x", body=b"hello").status == 200
        origin.turn()
        assert len(origin.take().messages) == 20


def test_another_endpoint_when_connecting_hangs() -> None:
    """The same after connectTimeout."""
    with blackhole() as port, RecordingOrigin() as origin:
        with shared(objects_for(port, origin.port), http={"connectTimeout": "400ms"}) as site:
            assert all(site.ask("POST", body=b"x").status == 200 for _ in range(12))


class Pooled:
    """Serves `good` requests per connection, then does `end` to the next one."""

    def __init__(self, good: int, end: Callable[[Peer], None]) -> None:
        self.good = good
        self.end = end
        self.requests: list[bytes] = []

    def __call__(self, peer: Peer) -> None:
        for _ in range(self.good):
            message = peer.read_request()
            if message is None:
                return
            self.requests.append(message.method)
            peer.send(OK)
        message = peer.read_request()
        if message is not None:
            self.requests.append(message.method)
            self.end(peer)


RETRIED = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]


@pytest.mark.parametrize("end", [reset_at_once, close_at_once])
@pytest.mark.parametrize("method", [*RETRIED, "POST", "PATCH"])
def test_reused_connection_that_dies(method: str, end: Callable[[Peer], None]) -> None:
    """No byte of an answer came: idempotent methods go out again on a fresh connection, others never twice."""
    script = Pooled(1, end)
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            assert client.request("GET", "/warm").status == 200
            answer = client.request(
                method, "/again", body=b"" if method in ("GET", "HEAD") else b"x"
            )
        if method in RETRIED:
            assert answer.status == 200
            assert script.requests == [b"GET", method.encode(), method.encode()]
        else:
            assert answer.status in (502, 503)
            assert script.requests == [b"GET", method.encode()]


def test_body_that_was_not_kept_is_not_sent_again() -> None:
    """More than 64 KiB of body cannot be replayed: no second try, though PUT is idempotent."""
    script = Pooled(1, reset_at_once)
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            assert client.request("GET", "/warm").status == 200
            answer = client.request("PUT", "/big", body=b"x" * 200_000)
            assert answer.status in (502, 503)
        assert script.requests == [b"GET", b"PUT"]


def test_replayed_body_is_the_same() -> None:
    """A PUT of 60 KiB arrives whole the second time."""
    bodies: list[bytes] = []

    def script(peer: Peer) -> None:
        while (message := peer.read_request()) is not None:
            if message.method == b"PUT":
                bodies.append(message.body)
                if len(bodies) == 1:
                    peer.reset()
                    return
            peer.send(OK)

    sent = bytes(range(256)) * 240
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port)) as site:
        for chunked in (False, True):
            bodies.clear()
            with site.client() as client:
                assert client.request("GET", "/warm").status == 200
                assert client.request("PUT", "/", body=sent, chunked=chunked).status == 200
            assert bodies == [sent, sent]


@pytest.mark.parametrize("end", [reset_at_once, close_at_once])
def test_fresh_connection_that_dies_is_not_tried_again(end: Callable[[Peer], None]) -> None:
    """Without a retry in the route, one try."""
    script = Pooled(0, end)
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port)) as site:
        assert site.ask().status in (502, 503)
        assert script.requests == [b"GET"]


def test_fresh_connection_is_tried_again_when_the_route_says_so() -> None:
    """`retry.attempts` counts tries after the first; POST is not repeated all the same."""
    script = Pooled(0, reset_at_once)
    objects = {"retry": {"attempts": 2, "backoff": "10ms"}}
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port, **objects)) as site:
        assert site.ask().status in (502, 503)
        assert script.requests == [b"GET"] * 3
        script.requests.clear()
        assert site.ask("POST", body=b"x").status in (502, 503)
        assert script.requests == [b"POST"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_zero_attempts_are_no_second_try_of_anything(method: str) -> None:
    """`retry: {attempts: 0}` switches off what is safe without a route's word too."""
    none = {"retry": {"attempts": 0, "codes": [503]}}
    script, failing = Pooled(1, reset_at_once), Failing(503, 9)
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port, **none)) as site:
        with site.client() as client:
            assert client.request("GET", "/warm").status == 200
            assert client.request(method, "/again").status in (502, 503)
        assert script.requests == [b"GET", method.encode()]
    with RecordingOrigin(failing) as origin:
        with shared(objects_for(origin.port, **none)) as site:
            assert site.ask(method, "/code").status == 503
        assert failing.seen == {b"/code": 1}
        with shared(objects_for(free_port(), origin.port, **none)) as site:
            # both endpoints are asked first in turn, and the one that refuses is asked alone
            assert 503 in {site.ask(method, f"/connect{at}").status for at in range(20)}


class Failing:
    """Answers `status` to the first `count` requests of each target."""

    def __init__(self, status: int, count: int) -> None:
        self.status = status
        self.count = count
        self.seen: dict[bytes, int] = {}

    def __call__(self, message: Message) -> bytes:
        target = message.target
        self.seen[target] = self.seen.get(target, 0) + 1
        return response(b"late", self.status if self.seen[target] <= self.count else 200)


@pytest.mark.parametrize(
    ("status", "failures", "answer", "tries"),
    [(503, 1, 200, 2), (503, 2, 200, 3), (503, 3, 503, 3), (500, 1, 500, 1), (502, 2, 200, 3)],
)
def test_retry_codes(status: int, failures: int, answer: int, tries: int) -> None:
    """Listed codes are tried again up to `attempts`, others surface, and so does the last."""
    failing = Failing(status, failures)
    retry = {"codes": [502, 503], "attempts": 2, "backoff": "5ms"}
    with RecordingOrigin(failing) as origin, shared(objects_for(origin.port, retry=retry)) as site:
        got = site.ask("GET", "/x")
        assert got.status == answer and got.body == b"late"
        assert failing.seen == {b"/x": tries}
        assert got.value("x-edge-upstream-service-time") is not None


def test_retry_repeats_the_body() -> None:
    """A listed code with a replayable body; without one the code surfaces."""
    failing = Failing(503, 1)
    retry = {"codes": [503], "attempts": 1, "backoff": "5ms"}
    with RecordingOrigin(failing) as origin, shared(objects_for(origin.port, retry=retry)) as site:
        assert site.ask("PUT", "/small", body=b"y" * 60_000).status == 200
        assert site.ask("PUT", "/big", body=b"y" * 200_000).status == 503
        origin.turn()
        bodies = [(m.target, len(m.body)) for m in origin.take().messages]
    assert bodies == [(b"/small", 60_000), (b"/small", 60_000), (b"/big", 200_000)]


def test_retry_budget() -> None:
    """Retries never multiply a storm: of 40 requests at once at most 20 % (at least 3 at a time) are repeated."""
    gate = threading.Barrier(41)
    answered = threading.Event()  # all that were not repeated
    count = [0]
    lock = threading.Lock()

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            with lock:
                count[0] += 1
                first = count[0] <= 40
            if first:
                gate.wait(20)
            else:
                assert answered.wait(20)
            peer.send(response(b"", 503))

    retry = {"codes": [503], "attempts": 10, "backoff": "20ms"}
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port, retry=retry)) as site:
        with ExitStack() as stack:
            clients = [stack.enter_context(site.client()) for _ in range(40)]
            for client in clients:
                client.expect("GET")
                client.send(build_request())
            gate.wait(20)
            waiting = set(clients)

            def repeated() -> bool:
                for client in list(waiting):
                    client.take_in()
                    if client.responses:
                        waiting.discard(client)
                return count[0] == 40 + len(waiting)  # who waits has been repeated

            site.wait_until(repeated, "an answer for all but those that are repeated")
            assert 3 <= count[0] - 40 <= 8, f"{count[0]} requests for 40"
            answered.set()
            assert {client.read_response().status for client in clients} == {503}
        assert count[0] <= 40 + 8 * 10, f"{count[0]} requests for 40"


def test_no_retry_once_an_answer_began() -> None:
    """A body that breaks off is not mended by asking again."""
    requests = [0]

    def script(peer: Peer) -> None:
        if peer.read_request() is not None:
            requests[0] += 1
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")

    retry = {"codes": [502, 503], "attempts": 3}
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port, retry=retry)) as site:
        with site.client() as client:
            client.expect("GET")
            client.send(build_request())
            (answer,) = client.read_to_end()
            assert answer.status == 200 and not answer.complete
        assert requests == [1]
