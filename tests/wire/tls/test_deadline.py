"""A handshake that does not come to its end: silent, slow or dead clients are parted with, those beside them are served."""

from __future__ import annotations

import select
import ssl
import time
from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness.client import DEADLINE
from wire.tls.port import HANDSHAKE, NAME, ByHand, TlsPort, read_to_end, record

HTTP = {"headTimeout": "1s"}
LATE = {
    "nothing": b"",
    "a byte": b"\x16",
    "six bytes": b"\x16\x03\x01\x02\x00\x01",
    "half a hello": record(HANDSHAKE, b"\x01\x00\x40\x00\x03\x03" + bytes(800)),
}


@pytest.mark.parametrize("start", LATE)
def test_a_handshake_that_stands_still(port: TlsPort, start: str) -> None:
    failed = port.metric("edgefast_handshakes_failed_total")
    port.say(LATE[start])  # comes back when the proxy has ended the connection
    port.wait_until(
        lambda: port.metric("edgefast_handshakes_failed_total") == failed + 1, "a count of it"
    )


def test_a_handshake_that_creeps(port: TlsPort) -> None:
    """Bytes that go on coming are no reason to wait: a record of 16 KiB would take until tomorrow."""
    end = time.monotonic() + DEADLINE
    with port.raw() as sock:
        sock.sendall(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03")
        answer = select.poll()
        answer.register(sock, select.POLLIN)
        while not answer.poll(50):
            assert time.monotonic() < end, "it may creep for ever"
            try:
                sock.sendall(b"\x00")
            except ConnectionError:
                break
        read_to_end(sock)


def test_a_second_flight_that_never_comes(port: TlsPort) -> None:
    """The proxy has paid for a signature; the client's Finished is missing."""
    sent: list[bytes] = []

    def first_only(data: bytes) -> Iterator[bytes]:
        if not sent:
            sent.append(data)
            yield data

    client = ByHand(port, port.context(), first_only)
    try:
        with client:
            client.ask()
    except (ConnectionError, ssl.SSLError, TimeoutError) as error:
        assert not isinstance(error, TimeoutError), "it was waited for longer than a ceiling"
    else:
        raise AssertionError("answered without a Finished")
    port.check_no_leak()


def test_who_is_connected_does_not_notice(port: TlsPort, origin: RecordingOrigin) -> None:
    """300 that stand still, and one that goes on asking until they have all been ended."""
    origin.take()
    asked = 0
    with port.client() as client:
        dead = [port.raw() for _ in range(300)]
        for number, sock in enumerate(dead):
            sock.sendall(list(LATE.values())[number % len(LATE)])
        look = select.poll()
        for sock in dead:
            look.register(sock, select.POLLIN)
        left = {sock.fileno() for sock in dead}
        end = time.monotonic() + DEADLINE
        while left:
            assert client.request("GET", "/", NAME).status == 200
            asked += 1
            for number, _ in look.poll(0):
                look.unregister(number)
                left.discard(number)
            assert time.monotonic() < end, f"{len(left)} wait still"
        for sock in dead:
            sock.close()
    assert len(origin.take().messages) == asked
    port.check_no_leak()
