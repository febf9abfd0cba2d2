"""The harness itself: its oracle passes a careful proxy and catches careless ones, its parsers refuse what they must.

A test of a test: `Relay` is the worst proxy there is (it copies bytes), nginx a good one. A wire suite that passed with
`Relay` in the place of edgefast would prove nothing.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from origin.message import Malformed, RequestReader
from origin.recording import RecordingOrigin
from wire.harness.cases import Case, CaseError, load, load_file, unescape
from wire.harness.client import Client
from wire.harness.gateway import LIVE
from wire.harness.oracle import run_case
from wire.harness.peers import Peer
from wire.harness.reference import normal_target, parse
from wire.harness.responses import BadResponse, ResponseReader
from wire.harness.site import Site

CASES = {case.name: case for case in load("request")}


class Relay:
    """Copies bytes both ways, through `change` towards the origin; answers 404 on its void port."""

    def __init__(
        self, origin: int, change: Callable[[bytes], bytes] = bytes, last: bytes = b""
    ) -> None:
        self._last = last  # sent to the origin when the client has gone
        self._origin = origin
        self._change = change
        self._listeners = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(2)]
        self.web = self._listeners[0].getsockname()[:2]
        self.void = self._listeners[1].getsockname()[:2]
        self._loops = [self._serve, self._serve_void]

    def __enter__(self) -> Relay:
        for listener, loop in zip(self._listeners, self._loops, strict=True):
            threading.Thread(target=self._accept, args=(listener, loop), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket, loop: Callable[[socket.socket], None]) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                threading.Thread(target=loop, args=(sock,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._origin)) as upstream, client:
            back = threading.Thread(target=_copy, args=(upstream, client), daemon=True)
            back.start()
            _copy(client, upstream, self._change, self._last)
            back.join(10)

    def _serve_void(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while client.recv(4096):
                client.sendall(b"HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n")


def _copy(
    source: socket.socket,
    sink: socket.socket,
    change: Callable[[bytes], bytes] = bytes,
    last: bytes = b"",
) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(change(data))
        sink.sendall(last)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


GOOD = [
    "request/content-length-valid/hello",
    "request/chunked-valid/several",
    "request/pipelining/five",
    "request/header-value-bytes/repeated-names-stay-in-order",
    "request/request-line/junk[hello]",
    "request/content-length-value/wrong[+5]",
    "request/content-length-repeated/different",
    "request/truncated/in-headers",
    "request/chunk-size/wrong[5g]",
]


@pytest.mark.parametrize("name", GOOD)
def test_nginx_passes(name: str, origin: RecordingOrigin) -> None:
    """What a careful proxy does satisfies the oracle, in every way of arriving."""
    with Peer("nginx", origin.port) as peer:
        run_case(CASES[name], peer, peer.web, origin, strict=False)


BAD = [
    "request/content-length-with-transfer-encoding/cl-first",
    "request/content-length-repeated/equal",
    "request/transfer-encoding-value/not-chunked[xchunked]",
    "request/header-name-separator/content-length[\\s]",
    "request/line-ends/only-lf",
    "request/request-line/http-1.0",
    "request/hop-by-hop/keep-alive[X-A]",
    "request/path/dot-segments[/a/../b]",
    "request/trailers/several",
    "request/chunk-extension/well-formed[;a=b]",
]


@pytest.mark.parametrize("name", BAD)
def test_relay_fails(name: str, origin: RecordingOrigin) -> None:
    """A proxy that copies bytes is caught by each of these cases."""
    with Relay(origin.port) as relay, pytest.raises(AssertionError):
        run_case(CASES[name], relay, relay.web, origin, strict=False, deadline=1)


FLAWS: dict[str, Callable[[bytes], bytes]] = {
    "drops a header": lambda data: data.replace(b"Accept: */*\r\n", b""),
    "changes the target": lambda data: data.replace(b" / ", b" /x "),
    "adds a request": lambda data: data + b"GET /more HTTP/1.1\r\nHost: a\r\n\r\n",
    "changes the body": lambda data: data.replace(b"hello", b"hallo"),
    "loses bytes": lambda data: data.replace(b"hello", b"hell"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaws_are_caught(flaw: str, origin: RecordingOrigin) -> None:
    """Single faults of an otherwise transparent proxy do not pass as valid forwarding."""
    case = CASES["request/content-length-valid/hello"]
    with Relay(origin.port, FLAWS[flaw]) as relay, pytest.raises(AssertionError):
        run_case(case, relay, relay.web, origin, strict=False, deadline=1)


def test_an_invented_last_chunk_is_caught(origin: RecordingOrigin) -> None:
    """A proxy that completes what the client left unfinished turns a cut-off upload into a valid one."""
    case = CASES["request/truncated/no-last-chunk"]
    with Relay(origin.port, last=b"0\r\n\r\n") as relay, pytest.raises(AssertionError):
        run_case(case, relay, relay.web, origin, strict=False, deadline=1)


def test_transparent_relay_forwards_valid_messages(origin: RecordingOrigin) -> None:
    """The relay itself is no reason to fail: without a flaw a plain valid case passes."""
    with Relay(origin.port) as relay:
        run_case(
            CASES["request/content-length-valid/hello"],
            relay,
            relay.web,
            origin,
            strict=False,
            deadline=1,
        )


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n X: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\nx\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX : 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_origin_parser_is_strict(data: bytes) -> None:
    """A proxy that emits anything doubtful is found out."""
    with pytest.raises(Malformed):
        RequestReader().feed(data)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_origin_parser_agrees_with_h11_at_any_split(size: int) -> None:
    """Valid forwarded messages read the same in all pieces, and as h11 reads them."""
    data = b"".join(
        CASES[name].data
        for name in ("request/content-length-valid/binary", "request/chunked-valid/several")
    )
    reader, found = RequestReader(), []
    for start in range(0, len(data), size):
        found += reader.feed(data[start : start + size])
    assert [(item.method, item.target, item.body) for item in found] == [
        (item.method, item.target, item.body) for item in parse(data)
    ]
    assert b"".join(item.raw for item in found) == data and not reader.rest


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx : 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;a\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na : b\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\ncontent-length: 0\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ],
)
def test_client_parser_is_strict(data: bytes) -> None:
    """Anything but one well-formed answer to the one request is refused."""
    reader = ResponseReader()
    reader.methods.append("GET")
    with pytest.raises(BadResponse):
        reader.feed(data)


def test_client_parser_at_any_split() -> None:
    """Answers of all framings, with an interim one, byte by byte."""
    data = (
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n"
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end"
    )
    reader = ResponseReader()
    reader.methods += ["GET", "GET", "GET", "HEAD", "GET"]
    found = []
    for at in range(len(data)):
        found += reader.feed(data[at : at + 1])
    last = reader.end()
    assert last is not None and last.complete and last.body == b"until the end"
    assert [(item.status, item.body) for item in found] == [
        (200, b"hi"), (200, b"abc"), (204, b""), (200, b""),
    ]  # fmt: skip
    assert [item.status for item in found[0].interim] == [103]


@pytest.mark.parametrize(
    ("text", "data"),
    [(rb"a\r\n\t\s\0\\\xff", b"a\r\n\t \0\\\xff"), (rb"\{3:ab\r}", b"ab\rab\rab\r"),
     (rb"\{3:\#,}", b"0,1,2,"), (rb"\@\@", b"MM")],
)  # fmt: skip
def test_escapes(text: bytes, data: bytes) -> None:
    """The escapes of case files."""
    assert unescape(text, b"M") == data


@pytest.mark.parametrize(
    "text",
    ["expect: forwards\n== a\nx\n", "expected: forward\n== a\nx\n", "expect: forward\n== a\nx \n",
     "expect: reject\n== a\nx\n", "expect: forward\n== a\n\\q\n", "expect: forward\n== a\n@ each: b\nx\n",
     "expect: forward\n== a\n"],
)  # fmt: skip
def test_wrong_case_files_are_refused(text: str, tmp_path: Path) -> None:
    """A slip in a case file is an error, not a case that tests nothing."""
    file = tmp_path / "x.http"
    file.write_text(text)
    with pytest.raises(CaseError):
        load_file(file)


def test_case_names_are_unique_and_many() -> None:
    """The acceptance set stays what it is: it may grow."""
    assert len(CASES) > 1000
    assert all(isinstance(case, Case) and case.data for case in CASES.values())


def test_client_tells_how_a_connection_ended(origin: RecordingOrigin) -> None:
    """EOF and reset are told apart; leak checks and close rules stand on it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()[:2]
        for end in ("eof", "reset"):
            with Client(address) as client:
                accepted, _ = server.accept()
                if end == "reset":
                    client.send(b"unread")
                    accepted.recv(1)
                accepted.close()
                assert not client.read_some()
                assert client.ended == end


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.target is not None])
def test_normal_form_of_the_reference(case: Case) -> None:
    """The slow normaliser gives what the hand-written cases say."""
    assert case.target is not None
    sent = case.data.lstrip(b"\r\n").split(b" ")[1]
    if case.listener == "web":
        assert normal_target(sent) == case.target


def test_a_gateway_that_is_started_again_is_live_once() -> None:
    """What is told below a failed test is of those that run: the log of one that does not is nobody's."""
    with Site([]) as site:
        site.terminate()
        assert site.exit_status() == 0
        site.start()
        assert LIVE.count(site) == 1
        assert str(site.pid) in site.title and "ready in" in site.log_tail()
    assert site not in LIVE
