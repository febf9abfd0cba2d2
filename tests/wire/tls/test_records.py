"""Bytes that are no TLS, or TLS that nobody means well: the connection ends, the backend sees nothing, everybody else is served.

What may come back is an alert (RFC 8446, 6.2; RFC 5246, 7.2) or nothing, never anything else.
"""

from __future__ import annotations

import pytest

from origin.recording import RecordingOrigin
from wire.tls.port import (
    ALERT,
    DATA,
    HANDSHAKE,
    HEARTBEAT,
    TlsPort,
    alerts,
    record,
)

# A second: some of these look like the start of something that may come yet.
HTTP = {"headTimeout": "1s"}
HANDSHAKE_FAILURE, PROTOCOL_VERSION = 40, 70

SSL2_HELLO = bytes.fromhex(
    "802e0100020015000000100100800200800300800400800500800600400700c0"
) + bytes(16)
HELLO_START = b"\x01\x00\x01\xfc\x03\x03"


def hello(
    version: bytes = b"\x03\x03", extensions: bytes = b"", ciphers: bytes = b"\xc0\x2b\xc0\x2f"
) -> bytes:
    """A ClientHello message (no record) without supported_versions: what was spoken before TLS 1.3."""
    body = version + bytes(32) + b"\x00" + len(ciphers).to_bytes(2, "big") + ciphers + b"\x01\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    return b"\x01" + len(body).to_bytes(3, "big") + body


HOSTILE: dict[str, list[bytes]] = {
    "sslv2 hello": [SSL2_HELLO],
    "sslv3": [record(HANDSHAKE, hello(b"\x03\x00"), b"\x03\x00")],
    "tls 1.0": [record(HANDSHAKE, hello(b"\x03\x01"))],
    "tls 1.1": [record(HANDSHAKE, hello(b"\x03\x02"))],
    "a version that never was": [record(HANDSHAKE, hello(b"\x02\x00"), b"\x02\x00")],
    "a record of another protocol": [b"\x16\xff\xff\x00\x05hello"],
    "an unknown record type": [record(99, b"x" * 50)],
    "an empty handshake record": [record(HANDSHAKE, b"")],
    "many empty handshake records": [record(HANDSHAKE, b"") * 5000],
    "many empty data records": [record(DATA, b"") * 5000],
    "data before a handshake": [record(DATA, b"GET / HTTP/1.1\r\n\r\n")],
    "change cipher spec first": [record(20, b"\x01")],
    "many change cipher specs": [record(20, b"\x01") * 5000],
    "a heartbeat": [record(HEARTBEAT, b"\x01\x40\x00")],
    "a heartbeat in a handshake": [
        record(HANDSHAKE, HELLO_START),
        record(HEARTBEAT, b"\x01\xff\xff" + b"x" * 16),
    ],
    "a fatal alert": [record(ALERT, b"\x02\x28")],
    "a warning and close": [record(ALERT, b"\x01\x00")],
    "many warnings": [record(ALERT, b"\x01\x5a") * 5000],
    "an alert of one byte": [record(ALERT, b"\x02")],
    "a finished message first": [record(HANDSHAKE, b"\x14\x00\x00\x0c" + bytes(12))],
    "a server's hello": [record(HANDSHAKE, b"\x02\x00\x00\x26\x03\x03" + bytes(36))],
    "a key update first": [record(HANDSHAKE, b"\x18\x00\x00\x01\x00")],
    "a hello request": [record(HANDSHAKE, b"\x00\x00\x00\x00" * 1000)],
    "a record longer than there are": [b"\x16\x03\x01\xff\xff" + b"x" * 600],
    "a hello of sixteen megabytes": [
        record(HANDSHAKE, b"\x01\xff\xff\xff" + bytes(16000)),
        *[record(HANDSHAKE, bytes(16000))] * 40,
    ],
    "a hello shorter than its fields": [record(HANDSHAKE, b"\x01\x00\x00\x10\x03\x03" + bytes(14))],
    "an extension longer than its hello": [
        record(HANDSHAKE, hello(extensions=b"\x00\x00\xff\xff\x00"))
    ],
    "an extension twice": [record(HANDSHAKE, hello(extensions=b"\x00\x17\x00\x00" * 2))],
    "no cipher at all": [record(HANDSHAKE, hello(ciphers=b""))],
    "no cipher in common": [record(HANDSHAKE, hello(ciphers=b"\x00\x04\x00\x05"))],
    "a fallback that is none": [record(HANDSHAKE, hello(b"\x03\x02", ciphers=b"\xc0\x2b\x56\x00"))],
    "http": [b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
    "http/2": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "ssh": [b"SSH-2.0-OpenSSH_9.2\r\n"],
    "zeros": [bytes(4096)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes(name: str, port: TlsPort, origin: RecordingOrigin) -> None:
    """The connection ends by itself, with an alert at most (or an answer in plain HTTP to plain HTTP)."""
    origin.take()
    said = port.say(*HOSTILE[name])
    if not (name == "http" and said.startswith(b"HTTP/1.1 400 ")):
        alerts(said)
    assert port.ask() == 200
    assert [message.target for message in origin.take().messages] == [b"/"]


@pytest.mark.parametrize("name", ["sslv2 hello", "tls 1.1", "many warnings", "an extension twice"])
def test_hostile_bytes_one_at_a_time(name: str, port: TlsPort, origin: RecordingOrigin) -> None:
    """The same ends whatever way they come: the first 300 bytes each in a packet, and then the end."""
    origin.take()
    data = b"".join(HOSTILE[name])
    said = port.say(*(data[at : at + 1] for at in range(min(len(data), 300))), fin=True)
    if not (name == "http" and said.startswith(b"HTTP/1.1 400 ")):
        alerts(said)
    assert origin.take().messages == []


@pytest.mark.parametrize("old", ["tls 1.0", "tls 1.1"])
def test_old_versions_are_named_in_the_refusal(old: str, port: TlsPort) -> None:
    assert alerts(port.say(*HOSTILE[old])) == [PROTOCOL_VERSION]


def test_sslv3_is_refused_in_its_own_words_or_ours(port: TlsPort) -> None:
    """It has no alert for versions (RFC 6101, 5.4.2): OpenSSL answers with what it has, AWS-LC as it answers others."""
    (alert,) = alerts(port.say(*HOSTILE["sslv3"]))
    assert alert in (HANDSHAKE_FAILURE, PROTOCOL_VERSION)
