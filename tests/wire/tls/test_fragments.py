"""ClientHellos in unusual pieces: edgefast serves what TCP and TLS allow, and limits what it waits for."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable

import pytest

from origin.recording import RecordingOrigin
from wire.tls.port import HANDSHAKE, ByHand, TlsPort, alerts, record

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
PADDING = 21  # the extension that a hello may be as long with as it likes (RFC 7685)


def context_of(port: TlsPort, version: ssl.TLSVersion) -> ssl.SSLContext:
    context = port.context()
    context.minimum_version = context.maximum_version = version
    return context


def records_of(size: int) -> Callable[[bytes], Iterable[bytes]]:
    """Cuts a ClientHello into records of so many bytes, in one packet; the rest stays as it is."""

    def cut(data: bytes) -> Iterable[bytes]:
        while data:
            length = 5 + int.from_bytes(data[3:5], "big")
            one, data = data[:length], data[length:]
            if one[0] == HANDSHAKE and one[5] == 1:
                pieces = (one[at : at + size] for at in range(5, len(one), size))
                yield b"".join(record(HANDSHAKE, piece) for piece in pieces)
            else:
                yield one

    return cut


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
def test_a_byte_a_record(port: TlsPort, version: ssl.TLSVersion, origin: RecordingOrigin) -> None:
    """TLS allows one byte in each record: edgefast serves it, or refuses it before a request reaches the backend."""
    origin.take()
    try:
        with ByHand(port, context_of(port, version), records_of(1)) as client:
            assert client.ask().startswith(b"HTTP/1.1 200 ")
    except (ssl.SSLError, ConnectionError):
        assert origin.take().messages == []
    assert port.ask() == 200


def padded(size: int) -> bytes:
    """The start of a handshake whose hello has a padding extension of so many bytes; no record is longer than allowed."""
    extensions = PADDING.to_bytes(2, "big") + size.to_bytes(2, "big") + bytes(size)
    body = b"\x03\x03" + bytes(32) + b"\x00\x00\x02\xc0\x2b\x01\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"".join(
        record(HANDSHAKE, message[at : at + 16384]) for at in range(0, len(message), 16384)
    )


@pytest.mark.parametrize("size", [10_000, 30_000, 65_000])
def test_a_long_hello_is_no_way_in(port: TlsPort, origin: RecordingOrigin, size: int) -> None:
    """The longest hello of the format gets an answer or an alert, at once or when its client has ended."""
    origin.take()
    said = port.say(padded(size), fin=True)
    # The ServerHello of one that is taken, else an alert.
    assert not said or said[0] == HANDSHAKE or alerts(said)
    assert port.ask() == 200
    assert len(origin.take().messages) == 1
