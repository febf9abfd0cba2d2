"""Client connections of a process: memory under a flood, lingering close, the cost of a slow head, and draining. Deadlines and bounds: core/exchange/test_timeouts, core/h1/test_connections and test_places."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.client import build_request
from wire.harness.site import Site


def objects_for(port: int, timeout: str = "0s") -> list[make.Object]:
    """Everything to one origin."""
    rules = [make.rule("origin", timeouts={"request": timeout})]
    return [make.route("all", rules), *make.service("origin", [("127.0.0.1", port)])]


@pytest.fixture(scope="module")
def plain(origin: RecordingOrigin) -> Iterator[Site]:
    with Site(objects_for(origin.port), http={"headTimeout": "120s"}) as running:
        yield running


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


# --- errors and floods ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
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


# --- draining ---------------------------------------------------------------------------------------------------------
