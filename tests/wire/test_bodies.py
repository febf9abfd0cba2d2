"""Bodies of all sizes both ways: content, framing, backpressure in bounded memory, and ends that come too early."""

from __future__ import annotations

import hashlib
import select
import socket
import threading
from collections.abc import Iterator

import pytest

from origin.answers import response
from origin.message import Message, parse_head
from origin.recording import RecordingOrigin
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.client import build_request
from wire.harness.site import Site, shared

MEBIBYTE = 1024 * 1024
SIZES = [0, 1, 1023, 4096, 16384, 32767, 32768, 32769, 65536, 65537, 1_000_003]


def pattern(size: int) -> bytes:
    """Bytes that show any loss, doubling or exchange."""
    block = b"".join(b"%07d\n" % number for number in range(8192))
    return (block * (size // len(block) + 1))[:size]


def echo_body(message: Message) -> bytes:
    """The request's body back, framed as the x-reply header asks."""
    if message.values(b"x-reply") != [b"chunked"]:
        return response(message.body)
    parts = [message.body[at : at + 7001] for at in range(0, len(message.body), 7001)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


@pytest.fixture(scope="module")
def echo() -> Iterator[RecordingOrigin]:
    with RecordingOrigin(echo_body) as running:
        yield running


class Sink:
    """A script that reads nothing until told to, then hashes what comes, or sends a large body."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.digest = hashlib.sha256()
        self.count = 0

    def __call__(self, peer: Peer) -> None:
        head = peer.read_head()
        if head is None:
            return
        if head.target == b"/download":
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 * MEBIBYTE))
            for _ in range(64):
                if not peer.send(pattern(MEBIBYTE)):
                    return
            peer.read_some()
            return
        assert self.release.wait(30)
        data = bytes(peer.received[head.size :])
        while True:
            self.digest.update(data)
            self.count += len(data)
            if self.count >= head.length:
                break
            data = peer.sock.recv(MEBIBYTE)
            if not data:
                return
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def slow(sink: Sink) -> Iterator[ScriptedOrigin]:
    with ScriptedOrigin(sink, receive_buffer=16384) as running:
        yield running


@pytest.fixture(scope="module")
def site(echo: RecordingOrigin) -> Iterator[Site]:
    with Site(objects_for(echo.port)) as running:
        yield running


def objects_for(port: int) -> list[make.Object]:
    """Everything to one origin, without a timeout on the answer."""
    rules = [make.rule("origin", timeouts={"request": "0s"})]
    return [make.route("all", rules), *make.service("origin", [("127.0.0.1", port)])]


@pytest.mark.parametrize("reply", ["length", "chunked"])
@pytest.mark.parametrize("chunked", [False, True])
def test_content_survives(chunked: bool, reply: str, site: Site, echo: RecordingOrigin) -> None:
    """All sizes around the buffers, on one connection, in all four combinations of framing."""
    echo.take()
    with site.client() as client:
        for size in SIZES:
            body = pattern(size)
            headers = [("x-reply", reply)]
            answer = client.request("POST", f"/{size}", "a", headers, body, chunked=chunked)
            assert answer.status == 200 and answer.body == body, size
            assert answer.framing == reply
    echo.turn()
    for message, size in zip(echo.take().messages, SIZES, strict=True):
        assert message.body == pattern(size)
        assert message.chunked == chunked or size == 0


def test_many_bodies_at_once(site: Site) -> None:
    """Bodies of different requests never mix."""
    failures: list[str] = []

    def work(number: int) -> None:
        with site.client() as client:
            for turn in range(10):
                body = bytes([number]) * (5000 * (turn + 1))
                answer = client.request("POST", "/", body=body, chunked=bool(turn % 2))
                if answer.body != body:
                    failures.append(f"{number}/{turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def push(sock: socket.socket, data: memoryview, patience: float) -> int:
    """Send until the other side has taken nothing for `patience` seconds; returns bytes taken."""
    sock.setblocking(False)
    ready = select.poll()  # not select(): a test before may have left many descriptors in use
    ready.register(sock, select.POLLOUT)
    sent = 0
    while sent < len(data):
        if not ready.poll(patience * 1000):
            break
        sent += sock.send(data[sent : sent + 65536])
    sock.settimeout(20)
    return sent


def test_slow_backend_stops_the_client(slow: ScriptedOrigin, sink: Sink) -> None:
    """A backend that does not read: the upload stalls, memory stays bounded, and nothing is lost afterwards."""
    body = pattern(48 * MEBIBYTE)
    with shared(objects_for(slow.port)) as site, site.client() as client:
        before = max(proc.resident_bytes(pid) for pid in site.worker_pids)
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        client.expect("PUT")
        client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body))
        sent = push(client.sock, memoryview(body), 0.5)
        grown = max(proc.resident_bytes(pid) for pid in site.worker_pids) - before
        assert sent < 24 * MEBIBYTE, "the client was never stopped"
        assert grown < 4 * MEBIBYTE, f"{grown} bytes more"
        sink.release.set()
        client.send(body[sent:])
        assert client.read_response().body == b"done"
    assert sink.digest.digest() == hashlib.sha256(body).digest()


def test_length_beyond_32_bits(echo: RecordingOrigin) -> None:
    """5 GiB are announced to the backend as 5 GiB; the cut-off upload is cut off there too."""
    with shared(objects_for(echo.port)) as site:
        echo.take()
        with site.client() as client:
            client.send(b"PUT /big HTTP/1.1\r\nHost: a\r\nContent-Length: 5368709120\r\n\r\nstart")
            site.wait_until(lambda: any(b"start" in it for it in echo.take().open_partials), "it")
        site.wait_until(lambda: not echo.take().open_partials, "the end at the backend")


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


def early(peer: Peer) -> None:
    """Answers from the head alone, without waiting for the body, and keeps the connection open."""
    data = bytearray()
    while True:
        while (head := parse_head(bytes(data))) is None:
            piece = peer.read_some()
            if not piece:
                return
            data += piece
        if not peer.send(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno"):
            return
        if head.length != 0:
            peer.read_to_end()
            return
        del data[: head.size]


@pytest.mark.parametrize("chunked", [False, True])
def test_answer_before_the_body_is_there(chunked: bool) -> None:
    """The client gets the early answer; the rest of its body is never read as a request by anybody."""
    body = SMUGGLED * 300
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    with ScriptedOrigin(early) as origin, shared(objects_for(origin.port)) as site:
        with site.client() as client:
            client.expect("POST")
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\n" + framing + b"\r\n\r\n" + sent[:100])
            answer = client.read_response()
            assert answer.status == 401 and answer.body == b"no"
            client.send(sent[100:])
            client.expect("GET")
            client.send(build_request("GET", "/after"))
            found = client.read_to_end(2)
            assert len(found) <= 1 and all(item.status in (200, 401) for item in found)
        site.check_no_leak()
    for peer in origin.connections:
        head, _, _ = bytes(peer.received).partition(b"\r\n")
        assert head.startswith((b"POST / ", b"GET /after ")), head
