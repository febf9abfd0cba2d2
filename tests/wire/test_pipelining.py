"""Pipelined requests whose backends misbehave or take their time: order, framing, and what never goes out (RFC 9112 9.3.2)."""

from __future__ import annotations

import threading

from origin.answers import response
from origin.message import Message
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
            if message.target == b"/junk":
                peer.send(b"junk\r\n\r\n")
                return
            peer.send(self.answer(message))

    @staticmethod
    def answer(message: Message) -> bytes:
        kind = message.target.rpartition(b"/")[2]
        if kind == b"204":
            return b"HTTP/1.1 204 No Content\r\n\r\n"
        if kind == b"304":
            return b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"
        if kind == b"chunked":
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        if kind == b"hints":
            return b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response(message.target)
        return response(message.target, head=message.method == b"HEAD")


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


def test_all_framings_in_one_go() -> None:
    """Answers without a body, of any framing, to any method, stay apart."""
    sent = [
        ("GET", "/a", 200, b"/a"), ("HEAD", "/b", 200, b""), ("GET", "/c/204", 204, b""),
        ("GET", "/d/chunked", 200, b"abc"), ("GET", "/e/304", 304, b""), ("HEAD", "/f/chunked", 200, b""),
        ("POST", "/g", 200, b"/g"), ("GET", "/h/hints", 200, b"/h/hints"), ("GET", "/i", 200, b"/i"),
    ]  # fmt: skip

    def answer_head_right(peer: Peer) -> None:
        while (message := peer.read_request()) is not None:
            whole = Backend.answer(message)
            if message.method == b"HEAD":
                whole = whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
            peer.send(whole)

    with ScriptedOrigin(answer_head_right) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            client.expect(*[method for method, *_ in sent])
            client.send(b"".join(build_request(method, target) for method, target, *_ in sent))
            for method, target, status, body in sent:
                answer = client.read_response()
                assert (answer.status, answer.body) == (status, body), (method, target)
            assert client.request("GET", "/last").body == b"/last"


def test_an_error_of_the_first_does_not_harm_the_second() -> None:
    """502 for the one, the answer for the other."""
    backend = Backend()
    with ScriptedOrigin(backend) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            client.expect("GET", "GET")
            client.send(build_request("GET", "/junk") + build_request("GET", "/2"))
            assert [client.read_response().status for _ in range(2)] == [502, 200]


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


def test_bodies_and_expectations_in_between() -> None:
    """Bodies of both framings and Expect headers in a pipeline are told apart."""
    backend = Backend()
    data = (
        build_request(
            "POST", "/1", headers=[("Expect", "100-continue")], body=b"GET /x HTTP/1.1\r\n\r\n"
        )
        + build_request("PUT", "/2", body=b"y" * 40_000, chunked=True)
        + build_request("GET", "/3", headers=[("Expect", "100-continue")])
        + build_request("POST", "/4", body=b"z" * 40_000)
    )
    with ScriptedOrigin(backend) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            client.expect("POST", "PUT", "GET", "POST")
            client.send(data)
            assert [client.read_response().body for _ in range(4)] == [b"/1", b"/2", b"/3", b"/4"]
    assert backend.asked == [b"/1", b"/2", b"/3", b"/4"]
