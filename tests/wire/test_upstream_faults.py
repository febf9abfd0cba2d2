"""What backends do wrong before, within and behind an answer, and what the client gets; reuse of their connections."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import pytest

from origin.answers import response
from origin.recording import RecordingOrigin
from origin.scripted import Peer, Script, ScriptedOrigin, serving
from wire.harness.client import Client, NoResponse, build_request
from wire.harness.ports import free_port
from wire.harness.scenes import OK, blackhole, close_at_once, hang, objects_for, reset_at_once
from wire.harness.site import Site, shared


def reset_behind_request(peer: Peer) -> None:
    peer.read_request()
    peer.reset()


def close_behind_request(peer: Peer) -> None:
    peer.read_request()


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
        # Time must not decide where the fault does.
        limit = "400ms" if statuses == (504,) else "20s"
        with shared(objects_for(origin.port, timeouts={"request": limit})) as site:
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
    limits = {"request": "120s"}  # longer than a client here waits
    with blackhole() as port:
        with shared(objects_for(port, timeouts=limits), http={"connectTimeout": "200ms"}) as site:
            assert site.ask().status == 503


def test_route_timeout_bounds_a_hanging_connect() -> None:
    """The shorter of the two wins."""
    limits = {"request": "200ms"}
    with blackhole() as port:
        with shared(objects_for(port, timeouts=limits), http={"connectTimeout": "120s"}) as site:
            assert site.ask().status == 504


def test_request_timeout_bounds_the_whole_answer() -> None:
    """An explicit timeouts.request ends a body that goes on too long; the client sees a cut-off body."""

    def script(peer: Peer) -> None:
        if peer.read_request() is None:
            return
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while peer.send(b"x") and not peer.stopping.is_set():
            time.sleep(0.02)

    with ScriptedOrigin(script) as origin:
        with shared(objects_for(origin.port, timeouts={"request": "1s"})) as site:
            with site.client() as client:
                client.expect("GET")
                client.send(build_request())
                (answer,) = client.read_to_end()  # all of it would take 20 s
                assert answer.status == 200 and not answer.complete and client.ended != "timeout"


def test_backend_request_timeout() -> None:
    """timeouts.backendRequest bounds one try."""
    with ScriptedOrigin(hang) as origin:
        limits = {"request": "120s", "backendRequest": "200ms"}  # longer than a client here waits
        with shared(objects_for(origin.port, timeouts=limits)) as site:
            assert site.ask().status == 504


def test_early_hints_reach_the_client() -> None:
    """103 is passed on before the final answer is there."""
    go_on = threading.Event()

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
            assert go_on.wait(20)
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
