"""HTTP/2 on HTTPS listeners: agreed on by ALPN, then the same as anywhere; names of other listeners, clients' certificates, switched off."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.http2.client import PREFACE, H2Client

PROTOCOL = 1
BOTH = ["h2", "http/1.1"]


class Site(Gateway):
    """Two listeners of a port, one beside them that asks for certificates, one without HTTP/2."""

    def __init__(self, origin: int) -> None:
        self.authority = Authority()
        self.port, self.asking_port, self.old_port = (free_port() for _ in range(3))
        super().__init__(self.build(origin))

    def build(self, origin: int) -> list[make.Object]:
        pairs = {name: self.authority.issue([f"{name}.test"]) for name in ("a", "b")}
        ca = {"group": "", "kind": "ConfigMap", "name": "clients"}
        validation = {"caCertificateRefs": [ca], "mode": "AllowValidOnly"}
        frontend = {"frontend": {"default": {"validation": validation}}}
        listeners = [make.listener(self.port, name, f"{name}.test", [name]) for name in pairs]
        return [
            make.gateway("web", listeners),
            make.gateway("asking", [make.listener(self.asking_port, "a", "", ["a"])], tls=frontend),
            make.gateway("old", [make.listener(self.old_port, "a", "", ["a"])], "old"),
            make.edge_proxy("old", http2={"enabled": False}),
            make.config_map("clients", {"ca.crt": self.authority.pem.decode()}),
            *(make.route(name, [make.rule("origin")], parent=name) for name in ("asking", "old")),
            make.route("web", [make.rule("origin")]),
            *(make.tls_secret(name, pair.certificate, pair.key) for name, pair in pairs.items()),
            *make.service("origin", [("127.0.0.1", origin)]),
        ]

    def context(self, *offered: str, certificate: bool = False) -> ssl.SSLContext:
        """A client's context."""
        pair = self.authority.issue(["client.test"], client=True) if certificate else None
        return self.authority.client_context(pair, alpn=offered)

    def connect(self, port: int = 0, certificate: bool = False) -> H2Client:
        """A connection that has agreed on HTTP/2."""
        tls = self.context("h2", certificate=certificate)
        client = H2Client(port or self.port, tls=tls, sni="a.test")
        assert isinstance(client.socket, ssl.SSLSocket)
        assert client.socket.selected_alpn_protocol() == "h2"
        return client

    def agreed(self, port: int, *offered: str) -> str | None:
        """What a handshake agrees on; the connection speaks HTTP/1.1 if that is it."""
        with Client(("127.0.0.1", port), tls=self.context(*offered), sni="a.test") as client:
            assert isinstance(client.sock, ssl.SSLSocket)
            chosen = client.sock.selected_alpn_protocol()
            if chosen != "h2":
                assert client.request("GET", "/", "a.test").status == 200
            return chosen


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin) -> Iterator[Site]:
    with Site(origin.port) as running:
        yield running


def test_requests(site: Site, origin: RecordingOrigin) -> None:
    origin.take()
    with site.connect() as client:
        assert client.get(authority="a.test").status == 200
        number = client.ask(authority="a.test", method="POST", end=False)
        client.body(number, bytes(100_000))
        assert client.finish(number).status == 200
        assert client.get(authority="a.test", scheme="http").status == 400
    origin.turn()
    first, second = origin.take().messages
    assert first.value(b"x-forwarded-proto") == b"https"
    assert second.body == bytes(100_000)


def test_what_is_agreed_on(site: Site) -> None:
    assert site.agreed(site.port, *BOTH) == "h2"
    assert site.agreed(site.port, *reversed(BOTH)) == "h2"  # ours is the choice
    assert site.agreed(site.port, "http/1.1") == "http/1.1"
    assert site.agreed(site.port) is None


def test_switched_off(site: Site) -> None:
    assert site.agreed(site.old_port, *BOTH) == "http/1.1"


def test_other_listeners_are_misdirected_by_stream(site: Site) -> None:
    """Each stream has its answer; the connection goes on."""
    with site.connect() as client:
        wrong = client.ask(authority="b.test")
        right = client.ask(authority="a.test")
        assert client.finish(wrong).status == 421
        assert client.finish(right).status == 200
        assert client.get(authority="nobody.test").status == 404
        assert client.get(authority="a.test").status == 200


def test_agreed_and_not_spoken(site: Site) -> None:
    with H2Client(site.port, tls=site.context("h2"), sni="a.test", start=False) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        client.read_to_end()
        assert client.goaways and client.goaways[-1][0] == PROTOCOL


def test_spoken_and_not_agreed(site: Site) -> None:
    """Without ALPN it is HTTP/1.1, whatever it begins with."""
    with Client(("127.0.0.1", site.port), tls=site.context(), sni="a.test") as client:
        client.send(PREFACE)
        client.expect("GET")
        assert client.read_response().status == 505
