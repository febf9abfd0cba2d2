"""What backends do wrong, what the client gets, what is tried again and who is left out (safe-retry table, passive health)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from origin.scripted import Peer, Script, ScriptedOrigin, serving
from wire.harness import objects as make
from wire.harness.client import Client, NoResponse, build_request
from wire.harness.ports import free_port
from wire.harness.responses import Response
from wire.harness.site import Site, shared

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


def objects_for(*ports: int, **rule: object) -> list[make.Object]:
    """Everything to one Service with these endpoints."""
    rules = [make.rule("origin", **rule)]
    endpoints = [("127.0.0.1", port) for port in ports]
    return [make.route("all", rules), *make.service("origin", endpoints)]


def reset_at_once(peer: Peer) -> None:
    peer.reset()


def close_at_once(peer: Peer) -> None:
    peer.close()


def reset_behind_request(peer: Peer) -> None:
    peer.read_request()
    peer.reset()


def close_behind_request(peer: Peer) -> None:
    peer.read_request()


def hang(peer: Peer) -> None:
    peer.read_to_end()


def hang_in_head(peer: Peer) -> None:
    peer.read_request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-")
    peer.read_to_end()


def interim_then_hang(peer: Peer) -> None:
    peer.read_request()
    peer.send(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
    peer.read_to_end()


FAULTS: dict[str, tuple[Script, tuple[int, ...]]] = {
    "reset at once": (reset_at_once, (502, 503)),
    "close at once": (close_at_once, (502, 503)),
    "reset behind the request": (reset_behind_request, (502, 503)),
    "close behind the request": (close_behind_request, (502, 503)),
    "hang": (hang, (504,)),
    "hang within the head": (hang_in_head, (504,)),
    "hang behind an interim answer": (interim_then_hang, (504,)),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_fault_before_the_answer(name: str, method: str) -> None:
    """The right status in short text, a connection that can be used again, nothing left open."""
    script, statuses = FAULTS[name]
    with ScriptedOrigin(script) as origin:
        with shared(objects_for(origin.port, timeouts={"request": "400ms"})) as site:
            with site.client() as client:
                for _ in range(2):
                    answer = client.request(method, "/", body=b"x" if method == "POST" else b"")
                    assert answer.status in statuses
                    assert answer.value("server") == "edgefast" and not answer.closes
                    if method != "HEAD":
                        assert (answer.value("content-type") or "").startswith("text/plain")
                        assert answer.body
            site.check_no_leak()


def test_refused() -> None:
    """503 with a reason."""
    with shared(objects_for(free_port())) as site:
        answer = site.ask()
        assert answer.status == 503 and answer.body
        assert site.ask("POST", body=b"x").status == 503


def test_unreachable_in_time() -> None:
    """A connect that hangs ends at connectTimeout, well before the route's time."""
    with blackhole() as port, shared(objects_for(port), http={"connectTimeout": "200ms"}) as site:
        began = time.monotonic()
        assert site.ask().status == 503
        assert time.monotonic() - began < 5


def test_route_timeout_bounds_a_hanging_connect() -> None:
    """The shorter of the two wins."""
    with blackhole() as port, shared(objects_for(port, timeouts={"request": "200ms"})) as site:
        began = time.monotonic()
        assert site.ask().status in (503, 504)
        assert time.monotonic() - began < 1.9


def test_request_timeout_bounds_the_whole_answer() -> None:
    """An explicit timeouts.request ends a body that goes on too long; the client sees a cut-off body."""

    def script(peer: Peer) -> None:
        if peer.read_request() is None:
            return
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while peer.send(b"x") and not peer.stopping.is_set():
            time.sleep(0.02)

    with ScriptedOrigin(script) as origin:
        with shared(objects_for(origin.port, timeouts={"request": "400ms"})) as site:
            with site.client() as client:
                client.expect("GET")
                client.send(build_request())
                began = time.monotonic()
                (answer,) = client.read_to_end(10)
                assert answer.status == 200 and not answer.complete
                assert time.monotonic() - began < 5


def test_backend_request_timeout() -> None:
    """timeouts.backendRequest bounds one try."""
    with ScriptedOrigin(hang) as origin:
        limits = {"request": "10s", "backendRequest": "200ms"}
        with shared(objects_for(origin.port, timeouts=limits)) as site:
            began = time.monotonic()
            assert site.ask().status == 504
            assert time.monotonic() - began < 5


# --- retries ----------------------------------------------------------------------------------------------------------


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
        with shared(objects_for(port, origin.port), http={"connectTimeout": "100ms"}) as site:
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
            answer = client.request(method, "/again", body=b"" if method in ("GET", "HEAD") else b"x")
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
    count = [0]
    lock = threading.Lock()

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            with lock:
                count[0] += 1
                first = count[0] <= 40
            if first:
                gate.wait(10)
            peer.send(response(b"", 503))

    retry = {"codes": [503], "attempts": 10, "backoff": "20ms"}
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port, retry=retry)) as site:
        with ExitStack() as stack:
            clients = [stack.enter_context(site.client()) for _ in range(40)]
            for client in clients:
                client.expect("GET")
                client.send(build_request())
            gate.wait(10)
            assert {client.read_response().status for client in clients} == {503}
        assert count[0] < 40 * 4, f"{count[0]} requests for 40"


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


# --- interim answers and reuse ----------------------------------------------------------------------------------------


def test_early_hints_reach_the_client() -> None:
    """103 is passed on before the final answer is there."""
    go_on = threading.Event()

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
            assert go_on.wait(10)
            peer.send(OK)

    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            client.expect("GET")
            client.send(build_request())
            data = client.sock.recv(4096)
            assert data.startswith(b"HTTP/1.1 103 ") and b"</a.css>" in data
            client.responses += client.reader.feed(data)
            go_on.set()
            answer = client.read_response()
            assert answer.body == b"ok" and [item.status for item in answer.interim] == [103]


def test_backend_connections_are_reused() -> None:
    """A hundred requests of a hundred clients, one after the other, need few backend connections."""
    with RecordingOrigin() as origin, shared(objects_for(origin.port)) as site:
        origin.take()
        for _ in range(100):
            assert site.ask().status == 200
        origin.turn()
        assert origin.take().connections <= 2


def test_close_from_the_backend_is_respected() -> None:
    """`Connection: close`: no further request goes there."""
    answer = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with ScriptedOrigin(serving(lambda message: answer)) as origin:
        with shared(objects_for(origin.port)) as site, site.client() as client:
            for _ in range(10):
                assert client.request().status == 200
        assert all(bytes(peer.received).count(b"GET / ") == 1 for peer in origin.connections)


def test_idle_backend_connections_are_given_up() -> None:
    """After upstreamIdle the pool lets go."""
    with RecordingOrigin() as origin:
        with shared(objects_for(origin.port), http={"upstreamIdle": "300ms"}) as site:
            assert site.ask().status == 200
            site.wait_until(lambda: origin.open_connections == 0, "the end of the idle connection")
            assert site.ask().status == 200


def test_backend_restart_costs_no_request() -> None:
    """Pooled connections that the backend has closed are noticed at checkout, also for POST."""
    port = free_port()
    with shared(objects_for(port)) as site:
        for _ in range(5):
            with RecordingOrigin(port=port) as origin:
                with ExitStack() as stack:
                    clients = [stack.enter_context(site.client()) for _ in range(8)]
                    for client in clients:
                        client.expect("POST")
                        client.send(build_request("POST", body=b"x"))
                    assert {client.read_response().status for client in clients} == {200}
                origin.turn()


# --- passive health ---------------------------------------------------------------------------------------------------


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


def test_nothing_for_the_wrong_client() -> None:
    """Under all faults at once each client gets its own answer or an error, never another's."""
    chosen = [0]
    lock = threading.Lock()

    def script(peer: Peer) -> None:
        while (message := peer.read_request()) is not None:
            with lock:
                chosen[0] += 1
                turn = chosen[0] % 7
            whole = response(message.target)
            if turn == 1:
                peer.reset()
                return
            if turn == 2:
                peer.send(whole[:-3])
                return
            if turn == 3:
                peer.send(whole + response(b"poison"))
                continue
            if turn == 4:
                peer.send(b"junk\r\n\r\n")
                return
            if turn == 5:
                peer.send(whole[:20])
                time.sleep(0.005)
                peer.send(whole[20:])
                continue
            peer.send(whole)

    wrong: list[str] = []

    def work(site: Site, number: int) -> None:
        client: Client | None = None
        for turn in range(60):
            target = f"/{number}/{turn}"
            client = client or site.client()
            try:
                answer = client.request("GET", target)
            except NoResponse:
                if client.ended == "timeout":
                    wrong.append(f"{target}: no answer")
                client.close()
                client = None
                continue
            if answer.status == 200 and answer.body != target.encode():
                wrong.append(f"{target}: {answer.body!r}")
            elif answer.status not in (200, 502, 503):
                wrong.append(f"{target}: {answer.status}")
        if client is not None:
            client.close()

    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port)) as site:
        threads = [threading.Thread(target=work, args=(site, number)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:10]
        site.check_no_leak()
