"""TLS towards clients: certificates by SNI, client certificates, swaps without a lost request. Rules: proxy/tls/test_server, core/net/test_tls."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
from cryptography import x509

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority, Pair
from wire.harness.client import Client, NoResponse
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port


class TlsSite(Gateway):
    """HTTPS listeners by hostname on one port, client certificates on two more."""

    def __init__(self, origin: int, authority: Authority) -> None:
        self.authority = authority
        self.port, self.valid_port, self.insecure_port = (free_port() for _ in range(3))
        self.pairs = {
            "a": authority.issue(["a.test"], "rsa"),
            "wild": authority.issue(["*.wild.test"]),
            "exact": authority.issue(["exact.wild.test"]),
            "any": authority.issue(["any.test"]),
        }
        self.origin = origin
        super().__init__(self.build())

    def build(self) -> list[make.Object]:
        """All objects with the current certificates."""
        ca = {"group": "", "kind": "ConfigMap", "name": "clients"}
        listeners = [
            make.listener(self.port, "a", "a.test", ["a"]),
            make.listener(self.port, "wild", "*.wild.test", ["wild"]),
            make.listener(self.port, "exact", "exact.wild.test", ["exact"]),
        ]
        made = [
            make.gateway("web", listeners),
            make.route("web", [make.rule("origin")]),
            make.config_map("clients", {"ca.crt": self.authority.pem.decode()}),
            *make.service("origin", [("127.0.0.1", self.origin)]),
        ]
        for name, port, mode in (
            ("valid", self.valid_port, "AllowValidOnly"),
            ("insecure", self.insecure_port, "AllowInsecureFallback"),
        ):
            validation = {"caCertificateRefs": [ca], "mode": mode}
            frontend = {"frontend": {"default": {"validation": validation}}}
            listener = make.listener(port, name, "", ["any"])
            made.append(make.gateway(name, [listener], tls=frontend))
            made.append(make.route(name, [make.rule("origin")], parent=name))
        made += [
            make.tls_secret(name, pair.certificate, pair.key) for name, pair in self.pairs.items()
        ]
        return made

    def connect(
        self, sni: str | None, port: int = 0, context: ssl.SSLContext | None = None
    ) -> Client:
        """A TLS connection that does not check the name (the tests look at the certificate)."""
        context = context or self.authority.client_context()
        context.check_hostname = False
        return Client(("127.0.0.1", port or self.port), tls=context, sni=sni)


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin, authority: Authority) -> Iterator[TlsSite]:
    with TlsSite(origin.port, authority) as running:
        yield running


def shown(client: Client) -> int:
    """Serial number of the certificate the proxy showed."""
    assert isinstance(client.sock, ssl.SSLSocket)
    data = client.sock.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(data or b"").serial_number


@pytest.mark.parametrize(
    ("sni", "pair"),
    [("a.test", "a"), ("x.wild.test", "wild"), ("exact.wild.test", "exact"), ("y.z.wild.test", "wild"),
     ("A.Test", "a")],
)  # fmt: skip
def test_certificate_by_name(sni: str, pair: str, site: TlsSite) -> None:
    """The most specific listener's certificate, and the request served over it."""
    with site.connect(sni) as client:
        assert shown(client) == site.pairs[pair].serial
        answer = client.request("GET", "/x", sni)
        assert answer.status == 200 and answer.body == b"/x"


# --- client certificates ----------------------------------------------------------------------------------------------


def ask_with(site: TlsSite, port: int, pair: Pair | None) -> int:
    """Status of a request with this client certificate; 0 when the connection was refused."""
    context = site.authority.client_context(pair)
    try:
        with site.connect("any.test", port, context) as client:
            return client.request("GET", "/", "any.test").status
    except (OSError, NoResponse):
        return 0


def test_client_certificates(site: TlsSite, authority: Authority) -> None:
    """AllowValidOnly takes one of its authority alone; AllowInsecureFallback takes any, and none."""
    pairs = authority.issue(["client"], client=True), None, Authority("x").issue(["c"], client=True)
    assert [ask_with(site, site.valid_port, pair) for pair in pairs] == [200, 0, 0]
    assert [ask_with(site, site.insecure_port, pair) for pair in pairs] == [200, 200, 200]


# --- swapping ---------------------------------------------------------------------------------------------------------
