"""Clients that have the keys and misuse them: what they say is encrypted well, and is what nobody may say.

tlslite-ng makes their handshakes; each case sends one thing that RFC 8446 (or RFC 5246) forbids, or more of one than anybody needs. The
connection ends, nothing of it reaches the backend, and everybody else is served.
"""

from __future__ import annotations

import socket
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from origin.recording import RecordingOrigin
from wire.tls.port import ALERT, DATA, HANDSHAKE, HEARTBEAT, NAME, TlsPort

with warnings.catch_warnings():  # it has a bridge to a module that Python is about to lose
    warnings.simplefilter("ignore", DeprecationWarning)
    from tlslite.api import HandshakeSettings, TLSConnection
    from tlslite.constants import ExtensionType
    from tlslite.errors import TLSError
    from tlslite.extensions import TLSExtension
    from tlslite.messages import ClientHello, Finished, Message

HTTP = {"headTimeout": "3s", "idleTimeout": "3s"}
CHANGE_CIPHER_SPEC = 20
TLS12, TLS13 = (3, 3), (3, 4)
REQUEST = b"GET /inside HTTP/1.1\r\nHost: a.test\r\n\r\n"
HELLO = b"\x01\x00\x00\x2b\x03\x03" + bytes(32) + b"\x00\x00\x02\x13\x01\x01\x00\x00\x00"


class Insider(TLSConnection):
    """Sends handshake messages of a class as `change` makes them; anything else as `say` is told."""

    def __init__(self, sock: socket.socket, change: dict[type, Callable[[Any], Any]]) -> None:
        super().__init__(sock)
        self._change = change

    def _sendMsg(self, msg: Any, *more: Any, **named: Any) -> Iterator[Any]:  # noqa: N802
        if change := self._change.get(type(msg)):
            msg = change(msg)
        yield from super()._sendMsg(msg, *more, **named)

    def say(self, kind: int, data: bytes) -> None:
        """One record, encrypted as all others are."""
        for _ in super()._sendMsgThroughSocket(Message(kind, bytearray(data))):
            pass

    def update_keys(self, times: int) -> None:
        """KeyUpdates that ask for one in return."""
        for _ in range(times):
            for _ in self.send_keyupdate_request(1):
                pass


def connect(
    port: TlsPort, version: tuple[int, int], change: dict[type, Callable[[Any], Any]] | None = None
) -> Insider:
    """An open connection of this version."""
    settings = HandshakeSettings()
    settings.minVersion = settings.maxVersion = version
    settings.keyShares = ["x25519"]
    insider = Insider(port.raw(), change or {})
    insider.ignoreAbruptClose = True
    insider.handshakeClientCert(settings=settings, serverName=NAME)
    return insider


def hear(insider: Insider) -> bytes:
    """What comes until the end; an alert is an end. TimeoutError when there is none."""
    heard = b""
    try:
        while data := insider.read(max=65536, min=1):
            heard += data
    except (TLSError, ConnectionError):
        pass
    return heard


def persist(act: Callable[[], object]) -> None:
    """Say all of it, or until the other side has heard enough: tlslite closes its socket then."""
    try:
        act()
    except OSError as error:
        assert not isinstance(error, TimeoutError), "nobody listens, and nobody ends it"


AFTER: dict[str, tuple[tuple[int, int], Callable[[Insider], object]]] = {
    "a record that nobody encrypted": (
        TLS13,
        lambda i: i.sock.send(b"\x17\x03\x03\x00\x20" + b"x" * 32),
    ),
    "the same in 1.2": (TLS12, lambda i: i.sock.send(b"\x17\x03\x03\x00\x20" + b"x" * 32)),
    "padding and no type": (TLS13, lambda i: i.say(0, b"")),
    "a type that is not": (TLS13, lambda i: i.say(99, b"hello")),
    "a type that is not in 1.2": (TLS12, lambda i: i.say(99, b"hello")),
    "an empty handshake record": (TLS13, lambda i: i.say(HANDSHAKE, b"")),
    "a hello in 1.3": (TLS13, lambda i: i.say(HANDSHAKE, HELLO)),
    "a finished again": (TLS13, lambda i: i.say(HANDSHAKE, b"\x14\x00\x00\x20" + bytes(32))),
    "a ticket from a client": (TLS13, lambda i: i.say(HANDSHAKE, b"\x04\x00\x00\x10" + bytes(16))),
    "a certificate nobody asked for": (
        TLS13,
        lambda i: i.say(HANDSHAKE, b"\x0b\x00\x00\x04" + bytes(4)),
    ),
    "a request for a certificate": (
        TLS13,
        lambda i: i.say(HANDSHAKE, b"\x0d\x00\x00\x03" + bytes(3)),
    ),
    "a message type that is not": (TLS13, lambda i: i.say(HANDSHAKE, b"\xfa\x00\x00\x01\x00")),
    "a key update that says nothing": (TLS13, lambda i: i.say(HANDSHAKE, b"\x18\x00\x00\x01\x02")),
    "a key update of no length": (TLS13, lambda i: i.say(HANDSHAKE, b"\x18\x00\x00\x00")),
    "half a message, then data": (
        TLS13,
        lambda i: (i.say(HANDSHAKE, b"\x18\x00"), i.say(DATA, REQUEST)),
    ),
    "a message of sixteen megabytes": (
        TLS13,
        lambda i: [i.say(HANDSHAKE, b"\x0b\xff\xff\xff" + bytes(16000)) for _ in range(40)],
    ),
    "a change of ciphers inside": (TLS13, lambda i: i.say(CHANGE_CIPHER_SPEC, b"\x01")),
    "a heartbeat": (TLS13, lambda i: i.say(HEARTBEAT, b"\x01\xff\xff" + b"x" * 16)),
    "a heartbeat in 1.2": (TLS12, lambda i: i.say(HEARTBEAT, b"\x01\xff\xff" + b"x" * 16)),
    "an alert of three bytes": (TLS13, lambda i: i.say(ALERT, b"\x02\x28\x00")),
    "an alert nobody knows": (TLS13, lambda i: i.say(ALERT, b"\x02\xfa")),
    "many warnings": (TLS12, lambda i: [i.say(ALERT, b"\x01\x5a") for _ in range(2000)]),
}


def is_well(port: TlsPort, origin: RecordingOrigin, *before: bytes) -> None:
    """What the backend got is this, and the next client is served."""
    assert port.ask() == 200
    assert [one.target for one in origin.take().messages] == [*before, b"/"]


@pytest.mark.parametrize("version", [TLS12, TLS13], ids=["1.2", "1.3"])
def test_a_sound_insider_is_served(
    port: TlsPort, origin: RecordingOrigin, version: tuple[int, int]
) -> None:
    """The others would fail for the wrong reason if this one did."""
    origin.take()
    insider = connect(port, version)
    insider.write(REQUEST)
    assert insider.read(max=65536, min=1).startswith(b"HTTP/1.1 200 ")
    insider.close()
    is_well(port, origin, b"/inside")


@pytest.mark.parametrize("name", AFTER)
def test_after_the_handshake(name: str, port: TlsPort, origin: RecordingOrigin) -> None:
    origin.take()
    version, act = AFTER[name]
    insider = connect(port, version)
    persist(lambda: act(insider))
    heard = hear(insider)
    # An empty record may be passed over; then no request came in time.
    assert heard == b"" or (name == "an empty handshake record" and b" 408 " in heard[:16])
    is_well(port, origin)


def test_keys_may_be_changed(port: TlsPort, origin: RecordingOrigin) -> None:
    origin.take()
    insider = connect(port, TLS13)
    insider.update_keys(1)
    insider.write(REQUEST)
    assert insider.read(max=65536, min=1).startswith(b"HTTP/1.1 200 ")
    insider.close()
    is_well(port, origin, b"/inside")


def test_keys_are_not_changed_for_ever(port: TlsPort, origin: RecordingOrigin) -> None:
    """5,000 that ask for an answer nobody reads: the connection ends, or goes on and holds next to nothing."""
    origin.take()
    insider = connect(port, TLS13)
    persist(lambda: insider.update_keys(5000))
    hear(insider)
    is_well(port, origin)
    port.check_no_leak()


# --- in the handshake -------------------------------------------------------------------------------------------------


def wrong_finished(message: Finished) -> Finished:
    message.verify_data = bytearray(len(message.verify_data))
    return message


def short_finished(message: Finished) -> Finished:
    message.verify_data = message.verify_data[:-1]
    return message


def replace_extension(number: int, *contents: bytes) -> Callable[[ClientHello], ClientHello]:
    """A hello in which an extension has this content, or several times other ones."""

    def change(message: ClientHello) -> ClientHello:
        kept = [one for one in message.extensions if one.extType != number]
        made = [TLSExtension(extType=number).create(number, bytearray(data)) for data in contents]
        message.extensions = [*made, *kept]
        return message

    return change


X25519 = b"\x00\x1d"
SHARE = ExtensionType.key_share
IN: dict[str, tuple[tuple[int, int], dict[type, Callable[[Any], Any]]]] = {
    "a finished that proves nothing": (TLS13, {Finished: wrong_finished}),
    "a finished that proves nothing in 1.2": (TLS12, {Finished: wrong_finished}),
    "a finished too short": (TLS13, {Finished: short_finished}),
    "a finished too short in 1.2": (TLS12, {Finished: short_finished}),
    "a key share of zeros": (
        TLS13,
        {ClientHello: replace_extension(SHARE, b"\x00\x24" + X25519 + b"\x00\x20" + bytes(32))},
    ),
    "a key share too short": (
        TLS13,
        {ClientHello: replace_extension(SHARE, b"\x00\x0c" + X25519 + b"\x00\x08" + b"x" * 8)},
    ),
    "a key share longer than itself": (
        TLS13,
        {ClientHello: replace_extension(SHARE, b"\x00\x24" + X25519 + b"\xff\xff" + b"x" * 32)},
    ),
    "no group at all": (
        TLS13,
        {ClientHello: replace_extension(ExtensionType.supported_groups, b"\x00\x00")},
    ),
    "no version at all": (
        TLS13,
        {ClientHello: replace_extension(ExtensionType.supported_versions, b"\x00")},
    ),
    "a version of tomorrow": (
        TLS13,
        {ClientHello: replace_extension(ExtensionType.supported_versions, b"\x02\x03\x09")},
    ),
    "an extension twice": (
        TLS13,
        {ClientHello: replace_extension(ExtensionType.extended_master_secret, b"", b"")},
    ),
}


@pytest.mark.parametrize("name", IN)
def test_in_the_handshake(name: str, port: TlsPort, origin: RecordingOrigin) -> None:
    origin.take()
    version, change = IN[name]
    try:
        insider = connect(port, version, change)
        insider.write(REQUEST)
    except (TLSError, ConnectionError):
        pass
    else:
        assert hear(insider) == b""
    is_well(port, origin)


def test_early_data_is_not_taken(port: TlsPort, origin: RecordingOrigin) -> None:
    """A client that announces it, has no ticket that allows it, and sends a request in its first flight."""
    origin.take()
    sent: list[Insider] = []

    def announce(message: ClientHello) -> ClientHello:
        early = TLSExtension(extType=42).create(42, bytearray())
        message.extensions = [early, *message.extensions]
        return message

    class Early(Insider):
        def _sendMsg(self, msg: Any, *more: Any, **named: Any) -> Iterator[Any]:  # noqa: N802
            yield from super()._sendMsg(msg, *more, **named)
            if isinstance(msg, ClientHello) and not sent:
                sent.append(self)
                self.say(DATA, REQUEST)

    settings = HandshakeSettings()
    settings.minVersion = settings.maxVersion = TLS13
    insider = Early(port.raw(), {ClientHello: announce})
    insider.ignoreAbruptClose = True
    try:
        insider.handshakeClientCert(settings=settings, serverName=NAME)
    except (TLSError, ConnectionError):
        pass
    else:
        hear(insider)
    assert sent
    is_well(port, origin)
