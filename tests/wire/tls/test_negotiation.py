"""What is agreed on in a handshake: protocols (ALPN), versions, groups, and what a client's session is good for."""

from __future__ import annotations

import socket
import ssl

import pytest

from wire.harness.client import Client
from wire.tls.port import NAME, TlsPort

PROTOCOLS: dict[str, tuple[list[str], set[str | None]]] = {
    "known": (["http/1.1"], {"http/1.1"}),
    "one of many": (["spdy/3", "http/1.1"], {"http/1.1"}),
    "none": ([], {None}),
    "unknown": (["gopher", "x" * 255], {None}),
    "an older one": (["http/1.0"], {None}),
}


def tls_of(client: Client) -> ssl.SSLSocket:
    assert isinstance(client.sock, ssl.SSLSocket)
    return client.sock


@pytest.mark.parametrize("name", PROTOCOLS)
def test_alpn(port: TlsPort, name: str) -> None:
    offered, chosen = PROTOCOLS[name]
    with port.client(port.context(offered)) as client:
        assert tls_of(client).selected_alpn_protocol() in chosen
        assert client.request("GET", "/", NAME).status == 200


def test_a_session_of_one_version_is_none_of_another(port: TlsPort) -> None:
    """A session of TLS 1.2 given to a client that speaks 1.3 too: a sound connection follows, resumed or not."""
    context = port.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with port.client(context) as client:
        assert client.request("GET", "/", NAME).status == 200
        session = tls_of(client).session
    context.maximum_version = ssl.TLSVersion.TLSv1_3
    with socket.create_connection(("127.0.0.1", port.port), 30) as raw:
        with context.wrap_socket(raw, server_hostname=NAME, session=session) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
