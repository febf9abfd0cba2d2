"""Client connections: deadlines, keep-alive limits, lingering close, floods, connection caps and draining."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.client import Client, NoResponse, build_request
from wire.harness.site import Site, shared

QUICK = {"headTimeout": "400ms", "idleTimeout": "400ms", "streamIdleTimeout": "400ms"}


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


def objects_for(port: int, timeout: str = "0s") -> list[make.Object]:
    """Everything to one origin."""
    rules = [make.rule("origin", timeouts={"request": timeout})]
    return [make.route("all", rules), *make.service("origin", [("127.0.0.1", port)])]


@pytest.fixture(scope="module")
def quick(origin: RecordingOrigin) -> Iterator[Site]:
    with Site(objects_for(origin.port), http=QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def few(origin: RecordingOrigin) -> Iterator[Site]:
    with Site(objects_for(origin.port), http={"maxRequestsPerConnection": 3}) as running:
        yield running


@pytest.fixture(scope="module")
def plain(origin: RecordingOrigin) -> Iterator[Site]:
    with Site(objects_for(origin.port), http={"headTimeout": "120s"}) as running:
        yield running


# --- deadlines ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start",
    [
        b"G",
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r",
    ],
)
def test_head_that_never_ends(start: bytes, quick: Site, origin: RecordingOrigin) -> None:
    """408 and the end, when the time for a head is over and not before."""
    origin.take()
    began = time.monotonic()  # before the proxy can have begun to count
    with quick.client() as client:
        client.expect("GET")
        client.send(start)
        (answer,) = client.read_to_end()
        assert time.monotonic() - began > 0.35
        assert answer.status == 408 and answer.closes and answer.value("server") == "edgefast"
        assert client.ended == "eof"
    origin.turn()
    assert origin.take().messages == []


def test_head_that_drips(quick: Site) -> None:
    """The time counts from the first byte: activity does not extend it."""
    data = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 100
    with quick.client() as client:
        client.expect("GET")
        for at in range(len(data)):
            if not client.send(data[at : at + 1]) or client.read_some(0.02):
                break
        assert at < len(data) - 1, "the drip was read to its end"
        if not client.responses:
            client.read_some()
        assert client.responses and client.responses[0].status == 408


def test_head_that_drips_on_a_used_connection(origin: RecordingOrigin) -> None:
    """The same for a second request."""
    limits = {"headTimeout": "1500ms"}
    with (
        shared(objects_for(origin.port), http=limits) as site,
        site.client(first=build_request()) as client,  # the first time counts from accept
    ):
        client.expect("GET")
        assert client.read_response().status == 200
        client.expect("GET")
        client.send(b"GET / HT")
        assert client.read_response().status == 408
        assert client.read_to_end() == [] and client.ended == "eof"


def test_connection_without_a_byte(quick: Site) -> None:
    """Counted from accept: the connection ends, with or without 408."""
    with quick.client() as client:
        client.expect("GET")
        found = client.read_to_end()
        assert client.ended == "eof"
        assert [item.status for item in found] in ([], [408])


def test_idle_connection_is_closed(origin: RecordingOrigin) -> None:
    """Between requests, silently."""
    limits = {"idleTimeout": "400ms"}
    with shared(objects_for(origin.port), http=limits) as site, site.client() as client:
        began = time.monotonic()  # before the proxy can have begun to count
        assert client.request("GET", "/").status == 200
        assert client.read_to_end() == [] and client.ended == "eof"
        assert time.monotonic() - began > 0.35


def test_body_that_never_comes(quick: Site, origin: RecordingOrigin) -> None:
    """An exchange without a byte either way ends with an error or the end, and is cut off at the backend."""
    origin.take()
    with quick.client() as client:
        client.expect("POST")
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        found = client.read_to_end()
        assert client.ended in ("eof", "reset")
        assert [item.status for item in found] in ([], [408], [504])
    quick.wait_until(lambda: not origin.take().open_partials, "the end at the backend")


def test_answer_that_stalls() -> None:
    """A body that stops coming: the client sees a cut-off body, never a complete one."""

    def script(peer: Peer) -> None:
        if peer.read_request() is not None:
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            peer.read_to_end()

    limits = {"streamIdleTimeout": "1500ms"}
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port), http=limits) as site:
        with site.client() as client:
            client.expect("GET")
            client.send(build_request())
            (answer,) = client.read_to_end()
            assert answer.status == 200 and not answer.complete and client.ended != "timeout"


def test_active_stream_is_not_idle() -> None:
    """Bytes every 100 ms for three seconds keep a limit of two away."""

    def script(peer: Peer) -> None:
        if peer.read_request() is not None:
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n")
            for _ in range(30):
                time.sleep(0.1)
                peer.send(b"x")

    limits = {"streamIdleTimeout": "2s"}
    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port), http=limits) as site:
        assert site.ask().body == b"x" * 30


# --- keep-alive -------------------------------------------------------------------------------------------------------


def test_requests_per_connection(few: Site) -> None:
    """The last allowed answer says close, and then the connection ends."""
    with few.client() as client:
        closes = [client.request("GET", f"/{number}").closes for number in range(3)]
        assert closes == [False, False, True]
        assert client.read_to_end() == [] and client.ended == "eof"


def test_requests_per_connection_when_pipelined(few: Site, origin: RecordingOrigin) -> None:
    """What is pipelined behind the last allowed one is not served."""
    origin.take()
    with few.client() as client:
        client.expect(*["GET"] * 6)
        client.send(b"".join(build_request("GET", f"/{number}") for number in range(6)))
        found = client.read_to_end()
        assert [item.body for item in found] == [b"/0", b"/1", b"/2"]
    origin.turn()
    assert [item.target for item in origin.take().messages] == [b"/0", b"/1", b"/2"]


def test_a_thousand_requests_on_one_connection(plain: Site) -> None:
    """One after the other, each its own answer."""
    with plain.client() as client:
        for number in range(1000):
            assert client.request("GET", f"/{number}").body == b"/%d" % number


def test_flood_of_pipelined_requests(plain: Site) -> None:
    """10,000 requests whose answers nobody reads: reading pauses in bounded memory; later all answers come in order."""
    before = max(proc.resident_bytes(pid) for pid in plain.worker_pids)
    data = b"".join(build_request("GET", f"/{number:05d}") for number in range(9_990))
    with plain.client(receive_buffer=8192) as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        client.expect(*["GET"] * 9_990)
        sender = threading.Thread(target=client.send, args=(data,))
        sender.start()
        time.sleep(0.3)
        grown = max(proc.resident_bytes(pid) for pid in plain.worker_pids) - before
        assert grown < 4 << 20, f"{grown} bytes more"
        for number in range(9_990):
            assert client.read_response().body == b"/%05d" % number
        sender.join()


def test_bytes_on_an_idle_connection(plain: Site) -> None:
    """A blank line between requests is nothing; anything else is judged as a request."""
    with plain.client() as client:
        assert client.request("GET", "/").status == 200
        client.send(b"\r\n")
        assert client.request("GET", "/").status == 200
        client.expect("GET")
        client.send(b"\x00")
        client.send(b"\r\n\r\n")
        assert [item.status for item in client.read_to_end()] == [400]


# --- errors and floods ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
     b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
     b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n",
     b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"],
)  # fmt: skip
def test_error_answers_survive_what_is_still_coming(bad: bytes, plain: Site) -> None:
    """Lingering close: a client in the middle of a large upload still gets to see the answer, not a reset."""
    with plain.client() as client:
        client.expect("POST")
        client.send(bad)
        for _ in range(20):
            client.send(b"x" * 50_000)
        (answer,) = client.read_to_end()
        assert 400 <= answer.status < 600 and answer.complete
        assert client.ended == "eof"


def test_lingering_is_bounded(plain: Site) -> None:
    """A client that goes on sending after its error is cut off soon."""
    with plain.client() as client:
        client.expect("GET")
        client.send(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n")
        end = time.monotonic() + 30
        while time.monotonic() < end and client.send(b"x" * 1000):
            time.sleep(0.01)
        assert time.monotonic() < end, "still taking bytes after 30 s"


def test_head_byte_by_byte_costs_linear_time(plain: Site) -> None:
    """A 31 KiB head in single bytes: work must not grow with the square (CVE-2020-12605 is the class)."""
    long = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 31_000 + b"\r\n\r\n"
    used = proc.cpu_seconds(plain.worker_pids)
    with plain.client() as client:
        client.expect("GET")
        for at in range(len(long)):
            client.send(long[at : at + 1])
        assert client.read_response().status == 200
    assert proc.cpu_seconds(plain.worker_pids) - used < 10


def test_ten_thousand_tiny_headers_byte_by_byte(plain: Site) -> None:
    """431 at the limit, whatever comes after (CVE-2019-15226 is the class)."""
    data = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(b"A%d:\r\n" % at for at in range(10_000))
    with plain.client() as client:
        client.expect("GET")
        for at in range(len(data)):
            if not client.send(data[at : at + 1]):
                break
            if at % 200 == 0:
                plain.turn()  # it has read them: what it has to say is there
                client.take_in()
                if client.responses:
                    break
        if not client.responses:
            client.read_some()
        assert client.responses[0].status == 431
        assert at < 2000, "the flood was read to its end"


def test_connection_cap(origin: RecordingOrigin) -> None:
    """Past the cap connections are refused and counted; those there are served; room is given back."""
    with shared(objects_for(origin.port), http={"maxConnections": 5}) as site:
        before = site.metric("edgefast_connections_refused_total")
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(site.client()) for _ in range(5)]
            assert all(client.request("GET", "/").status == 200 for client in held)
            for _ in range(3):
                with site.client() as extra:
                    extra.expect("GET")
                    extra.send(build_request())
                    assert [item.status for item in extra.read_to_end()] in ([], [503])
                    assert extra.ended in ("eof", "reset")
            assert all(client.request("GET", "/").status == 200 for client in held)
            site.turn()
            assert site.metric("edgefast_connections_refused_total") == before + 3
        site.wait_until(lambda: site.ask().status == 200, "room")


def test_silent_clients_do_not_hold_up_others(plain: Site) -> None:
    """A thousand half-sent heads, and requests are served as before."""
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(plain.client()).send(b"GET / HTTP/1.1\r\nHo")
        for _ in range(20):
            assert plain.ask().status == 200
    plain.check_no_leak()


# --- draining ---------------------------------------------------------------------------------------------------------


def test_drain_lets_requests_finish() -> None:
    """SIGTERM: readiness fails, answers say close, the request in flight is answered, the process ends with 0."""
    begun, go_on = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        while (message := peer.read_request()) is not None:
            if message.target == b"/slow":
                begun.set()
                assert go_on.wait(20)
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with ScriptedOrigin(script) as origin:
        site = Site(objects_for(origin.port), min_drain=5, drain_timeout=30)
        site.start()
        try:
            with site.client() as client, site.client() as idle:
                assert idle.request("GET", "/").status == 200
                client.expect("GET")
                client.send(build_request("GET", "/slow"))
                assert begun.wait(20)
                site.terminate()
                site.wait_until(lambda: site.get(site.ready, "/ready")[0] != 200, "not ready")
                site.wait_until(
                    lambda: site.ask().closes, "accepting goes on for the minimum, with close"
                )
                go_on.set()
                assert client.read_response().body == b"ok"
                assert idle.read_to_end() == [] and idle.ended == "eof"
            assert site.exit_status() == 0
        finally:
            site.stop()
        site.check_log()
        site.remove()


def test_drain_ends_at_its_limit() -> None:
    """A request that never ends does not hold the process."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.read_to_end()

    with ScriptedOrigin(script) as origin:
        site = Site(objects_for(origin.port), min_drain=0, drain_timeout=1)
        site.start()
        try:
            with site.client() as client:
                client.expect("GET")
                client.send(build_request())
                site.wait_until(lambda: bool(origin.connections), "the request at the backend")
                site.terminate()
                with contextlib.suppress(NoResponse):
                    client.read_response()
                assert client.ended != "timeout"
            assert site.exit_status() == 0
        finally:
            site.stop()
        site.check_log()
        site.remove()


def test_address_of_the_client_is_bound_to_its_connection(
    plain: Site, origin: RecordingOrigin
) -> None:
    """Another loopback address is told as it is."""
    origin.take()
    with Client(("127.0.0.1", plain.port), source="127.0.0.9") as client:
        assert client.request("GET", "/").status == 200
    origin.turn()
    (message,) = origin.take().messages
    assert message.value(b"x-forwarded-for") == b"127.0.0.9"
