"""Pipelined requests whose backends misbehave or take their time: order, framing, and what never goes out (RFC 9112 9.3.2)."""

from __future__ import annotations

import threading

from origin.answers import response
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.client import build_request
from wire.harness.scenes import objects_for
from wire.harness.site import shared

BAD = b"GET /bad HTTP/1.1\r\nHost : a\r\n\r\n"


class Backend:
    """Serves by target; `/wait` waits for `go_on`; notes the order of what it was asked."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.asked: list[bytes] = []

    def __call__(self, peer: Peer) -> None:
        while (message := peer.read_request()) is not None:
            self.asked.append(message.target)
            if message.target == b"/wait":
                assert self.go_on.wait(15)
            if message.target == b"/cut":
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\ncut")
                return
            peer.send(response(message.target))


def test_a_bad_request_waits_its_turn() -> None:
    """Its 400 comes behind the answer of the slow one before it, and it is the last."""
    backend = Backend()
    with ScriptedOrigin(backend) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            client.expect("GET", "GET", "GET", "GET")
            client.send(build_request("GET", "/wait") + build_request("GET", "/2") + BAD + BAD)
            assert not client.read_some(0.2), "answered out of turn"
            backend.go_on.set()
            found = client.read_to_end()
            assert [(item.status, item.body) for item in found[:2]] == [
                (200, b"/wait"),
                (200, b"/2"),
            ]
            assert [item.status for item in found[2:]] == [400]
    assert backend.asked == [b"/wait", b"/2"]


def test_nothing_behind_a_cut_off_answer() -> None:
    """The client cannot tell where a next answer would begin: the connection ends, the second is not sent anywhere."""
    backend = Backend()
    with ScriptedOrigin(backend) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            client.expect("GET", "GET")
            client.send(build_request("GET", "/cut") + build_request("POST", "/2", body=b"x"))
            (answer,) = client.read_to_end()
            assert not answer.complete and answer.body == b"cut"
    assert backend.asked == [b"/cut"]


def test_clients_that_leave_in_the_middle() -> None:
    """A reset with requests waiting behind a slow one: those are not sent any more, nothing is left."""
    backend = Backend()
    with ScriptedOrigin(backend) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            client.send(build_request("GET", "/wait") + build_request("POST", "/2", body=b"x") * 5)
            site.wait_until(lambda: backend.asked == [b"/wait"], "the first request")
            client.reset()
        site.check_no_leak()
        backend.go_on.set()
        assert site.ask("GET", "/3").body == b"/3"
    assert backend.asked == [b"/wait", b"/3"]
