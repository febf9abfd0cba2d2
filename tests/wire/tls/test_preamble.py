"""The PROXY protocol on HTTPS ports: before the hello and never inside of TLS. Which headers are valid: core/exchange/test_clientaddress."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from origin.recording import RecordingOrigin
from wire.harness.client import Client
from wire.harness.preambles import BAD, GOOD, V1, V2, proxy_v2
from wire.tls.port import NAME, ByHand, TlsPort, alerts

SETTINGS = ["optional", "required"]
LONGEST = 4096  # bytes of a v2 block with all that load balancers add to it


@pytest.fixture(scope="module")
def ports(origin: RecordingOrigin) -> Iterator[dict[str, TlsPort]]:
    with ExitStack() as stack:
        yield {
            setting: stack.enter_context(
                TlsPort(
                    origin,
                    http={"headTimeout": "1s"},
                    client_address=(
                        {"proxyProtocol": setting, "proxyProtocolCIDRs": ["127.0.0.0/8"]}
                        if setting != "off"
                        else None
                    ),
                )
            )
            for setting in ("off", *SETTINGS)
        }


def seen(port: TlsPort, origin: RecordingOrigin, first: bytes) -> str:
    """The client's address as the backend is told it, on two requests of a connection."""
    origin.take()
    with Client(("127.0.0.1", port.port), tls=port.context(), sni=NAME, first=first) as client:
        for _ in range(2):
            assert client.request("GET", "/", NAME).status == 200
    told = {message.value(b"x-forwarded-for") for message in origin.take().messages}
    (address,) = told
    assert address is not None
    return address.decode()


def say_hello(port: TlsPort, first: bytes) -> list[int]:
    """The alerts that a sound hello behind this gets; nothing else comes from who lets nobody in."""
    read, written = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        port.context().wrap_bio(read, written, server_hostname=NAME).do_handshake()
    return alerts(port.say(first, written.read()))


def refused(port: TlsPort) -> float:
    return port.metric("edgefast_proxy_protocol_refused_total")


@pytest.mark.parametrize("setting", SETTINGS)
def test_it_names_the_client(
    ports: dict[str, TlsPort], origin: RecordingOrigin, setting: str
) -> None:
    block, address = GOOD["v2-tlv"]
    assert seen(ports[setting], origin, block) == address


def test_the_longest(ports: dict[str, TlsPort], origin: RecordingOrigin) -> None:
    """What a hello has room for behind it is no matter."""
    fill = LONGEST - len(proxy_v2("192.0.2.8")) - 3
    longest = proxy_v2("192.0.2.8", extra=b"\x04" + fill.to_bytes(2, "big") + bytes(fill))
    assert len(longest) == LONGEST
    assert seen(ports["required"], origin, longest) == "192.0.2.8"
    assert not ports["required"].say(V2 + b"\x21\x11" + LONGEST.to_bytes(2, "big"))


@pytest.mark.parametrize("name", ["v1-tcp4"])
def test_a_byte_a_packet(ports: dict[str, TlsPort], origin: RecordingOrigin, name: str) -> None:
    """Header and hello are one stream: any cut, also none between them."""
    block, address = GOOD[name]
    for size in (1, 7, 1 << 20):
        origin.take()
        rest = block

        def cut(data: bytes, size: int = size) -> Iterator[bytes]:
            nonlocal rest
            data, rest = rest + data, b""
            yield from (data[at : at + size] for at in range(0, len(data), size))

        with ByHand(ports["required"], ports["required"].context(), cut) as client:
            assert client.ask().startswith(b"HTTP/1.1 200 ")
        (message,) = origin.take().messages
        assert message.value(b"x-forwarded-for") == address.encode()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["v1-port", "v1-twice", "v2-huge", "v2-signature"])
def test_broken_ones(
    ports: dict[str, TlsPort], origin: RecordingOrigin, name: str, setting: str
) -> None:
    """The connection ends before anything of TLS; not even an alert is for who cannot say who it is."""
    origin.take()
    said = say_hello(ports[setting], BAD[name])
    # What is no header, or comes behind one, is a bad hello.
    assert not said or setting == "optional" or name == "v1-twice"
    assert origin.take().messages == []


def test_required_means_required(ports: dict[str, TlsPort], origin: RecordingOrigin) -> None:
    port = ports["required"]
    origin.take()
    before = refused(port)
    assert say_hello(port, b"") == []
    port.wait_until(lambda: refused(port) == before + 1, "a count of it")
    assert origin.take().messages == []
    assert seen(port, origin, V1) == "192.0.2.7"


def test_optional_means_optional(ports: dict[str, TlsPort], origin: RecordingOrigin) -> None:
    assert seen(ports["optional"], origin, b"") == "127.0.0.1"


def test_off_means_off(ports: dict[str, TlsPort], origin: RecordingOrigin) -> None:
    origin.take()
    assert say_hello(ports["off"], V1)
    assert origin.take().messages == []


@pytest.mark.parametrize("setting", ["off", *SETTINGS])
def test_inside_of_tls_it_is_no_header(
    ports: dict[str, TlsPort], origin: RecordingOrigin, setting: str
) -> None:
    """A client that could say it there would choose its own address."""
    port = ports[setting]
    origin.take()
    first = V1 if setting == "required" else b""
    with Client(("127.0.0.1", port.port), tls=port.context(), sni=NAME, first=first) as client:
        client.expect("GET")
        client.send(V1 + b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        assert [item.status for item in client.read_to_end(5)] == [400]
    assert origin.take().messages == []


def test_half_a_header_has_a_deadline(ports: dict[str, TlsPort]) -> None:
    """As a hello has; nobody hears anything."""
    port = ports["required"]
    for start in (b"", V1[:20], V2, proxy_v2("192.0.2.8"), V1):
        assert port.say(start) == b""
    port.check_no_leak()
