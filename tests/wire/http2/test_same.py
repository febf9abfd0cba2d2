"""One request in HTTP/1.1 and in HTTP/2: the same rule, the same bytes to the backend but for framing, the same answer."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from origin.message import Message
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness.site import Site
from wire.http2.client import H2Client

#: What is made anew for each request, or tells how its body is framed.
OWN = {b"x-request-id", b"transfer-encoding", b"content-length", b"traceparent"}
TOLD = {
    b"date",
    b"x-edge-upstream-service-time",
    b"connection",
    b"transfer-encoding",
    b"content-length",
    b":status",
}


class Recorder:
    """What the backend saw last."""

    def __init__(self) -> None:
        self.seen: list[Message] = []

    def __call__(self, peer: Peer) -> None:
        while message := peer.read_request():
            self.seen.append(message)
            size = len(message.body)
            body = b"" if message.method == b"HEAD" else b"%d" % size
            peer.send(
                b"HTTP/1.1 203 X\r\nX-Ab: C\r\nContent-Length: %d\r\n\r\n" % len(b"%d" % size)
            )
            peer.send(body)


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture(scope="module")
def site(recorder: Recorder) -> Iterator[Site]:
    with ScriptedOrigin(recorder) as origin:
        rules = [
            make.rule("origin", matches=[make.path("/a")]),
            make.rule("origin", matches=[make.path("/b/c")]),
        ]
        objects = [
            make.route("some", rules),
            *make.service("origin", [("127.0.0.1", origin.port)]),
        ]
        with Site(objects) as running:
            yield running


def a_request(seed: int) -> tuple[str, str, str, list[tuple[str, str]], bytes]:
    pick = random.Random(seed)
    method = pick.choice(["GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "FOO"])
    path = pick.choice(
        ["/a", "/a/", "/a/../b/c", "/b", "/b/c?d=e&f", "//a", "/a%2fb", "/a/%41", "/a%"]
    )
    host = pick.choice(["a", "A.example:80", "[::1]", "a,b", "a_b"])
    names = ["x-a", "accept", "cookie", "x-forwarded-for", "x-edge-y", "user-agent", "a_b", "te"]
    values = ["", "b", "a, b", 'q="\t"', "caf\xe9", "trailers"]
    fields = []
    for name in pick.sample(names, pick.randrange(4)):
        value = "trailers" if name == "te" else pick.choice(values)
        fields.append((name, value))
    body = bytes(pick.randrange(2000)) if method in ("POST", "PUT") else b""
    if body:
        fields.append(("content-length", str(len(body))))
    return method, path, host, fields, body


def seen(recorder: Recorder) -> object:
    """The backend's view, less what is another each time."""
    messages, recorder.seen[:] = recorder.seen[:], []
    return [
        (one.method, one.target, sorted(h for h in one.headers if h[0] not in OWN), one.body)
        for one in messages
    ]


@pytest.mark.parametrize("block", range(8))
def test_same(site: Site, recorder: Recorder, block: int) -> None:
    for seed in range(block * 40, block * 40 + 40):
        method, path, host, fields, body = a_request(seed)
        with site.client() as http1:
            lines = [(name, value) for name, value in fields if name != "content-length"]
            one = http1.request(method, path, host, lines, body)
        by_http1 = seen(recorder)
        with H2Client(site.port) as client:
            encoded = [(n, v.encode("latin-1")) for n, v in fields]
            number = client.ask(
                encoded,  # type: ignore[arg-type]
                method=method,
                path=path,
                authority=host,
                end=not body,
            )
            if body:
                client.body(number, body)
            other = client.finish(number)
        assert other.status == one.status, (seed, a_request(seed), other)
        assert seen(recorder) == by_http1, (seed, a_request(seed))
        assert other.body == one.body
        of_http1 = sorted(field for field in one.headers if field[0] not in TOLD)
        assert sorted(field for field in other.fields if field[0] not in TOLD) == of_http1, seed
