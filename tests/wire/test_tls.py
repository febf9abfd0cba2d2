"""TLS towards clients: certificates by SNI, versions, 421, client certificates, and swaps without a dropped connection."""

from __future__ import annotations

import socket
import ssl
import threading
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
    """HTTPS listeners by hostname on one port, a catch-all on another, client certificates on two more."""

    def __init__(self, origin: int, authority: Authority, stranger: Authority) -> None:
        self.authority = authority
        self.port, self.any_port, self.valid_port, self.insecure_port = (
            free_port() for _ in range(4)
        )
        self.pairs = {
            "a": authority.issue(["a.test"], "rsa"),
            "wild": authority.issue(["*.wild.test"]),
            "exact": authority.issue(["exact.wild.test"]),
            "both-rsa": authority.issue(["both.test"], "rsa"),
            "both-ecdsa": authority.issue(["both.test"], "ecdsa"),
            "any": authority.issue(["any.test", "other.test", "127.0.0.1"]),
        }
        self.origin = origin
        del stranger
        super().__init__(self.build())

    def build(self) -> list[make.Object]:
        """All objects with the current certificates."""
        ca = {"group": "", "kind": "ConfigMap", "name": "clients"}
        listeners = [
            make.listener(self.port, "a", "a.test", ["a"]),
            make.listener(self.port, "wild", "*.wild.test", ["wild"]),
            make.listener(self.port, "exact", "exact.wild.test", ["exact"]),
            make.listener(self.port, "both", "both.test", ["both-rsa", "both-ecdsa"]),
        ]
        made = [
            make.gateway("web", listeners),
            make.gateway("any", [make.listener(self.any_port, "any", "", ["any"])]),
            make.route("web", [make.rule("origin")]),
            make.route("any", [make.rule("origin")], ["any.test", "127.0.0.1"], parent="any"),
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
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def stranger() -> Authority:
    return Authority("somebody else")


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin, authority: Authority, stranger: Authority) -> Iterator[TlsSite]:
    with TlsSite(origin.port, authority, stranger) as running:
        yield running


def tls_of(client: Client) -> ssl.SSLSocket:
    """The TLS side of a connection."""
    assert isinstance(client.sock, ssl.SSLSocket)
    return client.sock


def shown(client: Client) -> int:
    """Serial number of the certificate the proxy showed."""
    data = tls_of(client).getpeercert(binary_form=True)
    assert data is not None
    return x509.load_der_x509_certificate(data).serial_number


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


@pytest.mark.parametrize("sni", ["any.test", "other.test", "unknown.test", None])
def test_listener_without_hostname_takes_any_name(sni: str | None, site: TlsSite) -> None:
    """Also none at all."""
    with site.connect(sni, site.any_port) as client:
        assert shown(client) == site.pairs["any"].serial


def test_unknown_host_over_tls(site: TlsSite) -> None:
    """404, as over plain HTTP."""
    with site.connect("other.test", site.any_port) as client:
        answer = client.request("GET", "/", "other.test")
        assert answer.status == 404 and answer.value("content-length") == "0"


@pytest.mark.parametrize("sni", ["unknown.test", "wild.test", "b.a.test", None])
def test_name_of_no_listener(sni: str | None, site: TlsSite) -> None:
    """No certificate fits: the handshake fails, or nothing is served."""
    try:
        client = site.connect(sni)
    except OSError:
        return
    with client:
        assert client.request("GET", "/", sni or "a.test").status in (404, 421)


@pytest.mark.parametrize(
    ("sni", "host", "status"),
    [
        ("a.test", "a.test", 200), ("a.test", "a.test:443", 200), ("a.test", "A.TEST", 200),
        ("a.test", "x.wild.test", 421), ("a.test", "both.test", 421),
        ("x.wild.test", "y.wild.test", 200), ("x.wild.test", "exact.wild.test", 421),
        ("exact.wild.test", "x.wild.test", 421), ("exact.wild.test", "exact.wild.test", 200),
    ],
)  # fmt: skip
def test_misdirected_requests(sni: str, host: str, status: int, site: TlsSite) -> None:
    """421 when Host belongs to another listener than the handshake's name (RFC 9110 15.5.20)."""
    with site.connect(sni) as client:
        assert client.request("GET", "/", host).status == status
        if status == 421:  # the connection itself is fine
            assert client.request("GET", "/", sni).status == 200


def test_backend_is_told_https(site: TlsSite, origin: RecordingOrigin) -> None:
    """x-forwarded-proto."""
    origin.take()
    with site.connect("a.test") as client:
        client.request("GET", "/", "a.test", [("X-Forwarded-Proto", "http")])
    origin.turn()
    (message,) = origin.take().messages
    assert message.value(b"x-forwarded-proto") == b"https"


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["http/1.1"], "http/1.1"), (["http/0.9", "http/1.1"], "http/1.1"), ([], None)],
)
def test_alpn(offered: list[str], chosen: str | None, site: TlsSite) -> None:
    """HTTP/1.1 is spoken where nothing better is offered, and it is said so."""
    with site.connect("a.test", context=site.authority.client_context(alpn=offered)) as client:
        assert tls_of(client).selected_alpn_protocol() == chosen
        assert client.request("GET", "/", "a.test").status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(version: ssl.TLSVersion, site: TlsSite) -> None:
    """1.2 and 1.3."""
    context = site.authority.client_context()
    context.minimum_version = context.maximum_version = version
    with site.connect("a.test", context=context) as client:
        assert client.request("GET", "/", "a.test").status == 200


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_old_version_is_refused(site: TlsSite) -> None:
    """1.1 and below fail in the handshake."""
    context = site.authority.client_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(OSError):
        site.connect("a.test", context=context)


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_rsa_and_ecdsa_side_by_side(kind: str, site: TlsSite) -> None:
    """The client's ciphers decide which of the two it gets."""
    context = site.authority.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(f"ECDHE-{kind.upper()}-AES128-GCM-SHA256")
    with site.connect("both.test", context=context) as client:
        assert shown(client) == site.pairs[f"both-{kind}"].serial


def test_resumption(site: TlsSite) -> None:
    """A second connection to the worker saves the handshake."""
    context = site.authority.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    with site.connect("a.test", context=context) as client:
        assert client.request("GET", "/", "a.test").status == 200
        session = tls_of(client).session
    with socket.create_connection(("127.0.0.1", site.port), 10) as raw:
        with context.wrap_socket(raw, server_hostname="a.test", session=session) as again:
            assert again.session_reused


def test_session_of_one_listener_opens_no_other(site: TlsSite) -> None:
    """Resumed under another name, a connection speaks for one of the two listeners, never for both."""
    context = site.authority.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    with site.connect("a.test", context=context) as client:
        assert client.request("GET", "/", "a.test").status == 200
        session = tls_of(client).session
    statuses = []
    for host in ("a.test", "x.wild.test"):
        raw = socket.create_connection(("127.0.0.1", site.port), 10)
        with context.wrap_socket(raw, server_hostname="x.wild.test", session=session) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % host.encode())
            statuses.append(sock.recv(4096)[9:12])
    assert sorted(statuses) == [b"200", b"421"]


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 600]
)
def test_no_tls_on_a_tls_port(data: bytes, site: TlsSite, origin: RecordingOrigin) -> None:
    """The connection ends; nothing reaches the backend, nothing is logged as a fault."""
    origin.take()
    with socket.create_connection(("127.0.0.1", site.port), 10) as raw:
        raw.sendall(data)
        try:
            while raw.recv(4096):
                pass
        except ConnectionResetError:
            pass
    origin.turn()
    assert origin.take().messages == []


def test_handshake_that_never_comes(site: TlsSite) -> None:
    """Silent TLS connections do not hold up others, and closing them leaks nothing."""
    raws = [socket.create_connection(("127.0.0.1", site.port), 10) for _ in range(50)]
    for raw in raws[::2]:
        raw.sendall(b"\x16\x03\x01")
    with site.connect("a.test") as client:
        assert client.request("GET", "/", "a.test").status == 200
    for raw in raws:
        raw.close()
    site.check_no_leak()


@pytest.mark.parametrize("size", [100, 16_384, 3_000_000])
def test_bodies_over_tls(size: int, site: TlsSite, origin: RecordingOrigin) -> None:
    """Both ways, around and beyond a record."""
    from origin.answers import response

    body = bytes(range(256)) * (size // 256 + 1)
    with origin.answering(lambda message: response(message.body)), site.connect("a.test") as client:
        for chunked in (False, True):
            assert client.request("POST", "/", "a.test", body=body, chunked=chunked).body == body


def test_pipelining_over_tls(site: TlsSite) -> None:
    """Several requests in one record, and one request over several."""
    with site.connect("a.test") as client:
        client.expect(*["GET"] * 5)
        for number in range(4):
            client.send(b"GET /%d HTTP/1.1\r\nHost: a.test\r\n\r\n" % number)
        for byte in b"GET /4 HTTP/1.1\r\nHost: a.test\r\n\r\n":
            client.send(bytes([byte]))
        assert [client.read_response().body for _ in range(5)] == [
            b"/0",
            b"/1",
            b"/2",
            b"/3",
            b"/4",
        ]


def test_bad_request_over_tls(site: TlsSite) -> None:
    """The answer is seen, then the end."""
    with site.connect("a.test") as client:
        client.expect("GET")
        client.send(b"GET / HTTP/1.1\r\nHost : a.test\r\n\r\n")
        assert [item.status for item in client.read_to_end(5)] == [400]
        assert client.ended == "eof"


# --- client certificates ----------------------------------------------------------------------------------------------


def ask_with(site: TlsSite, port: int, pair: Pair | None) -> int:
    """Status of a request with this client certificate; 0 when the connection was refused."""
    context = site.authority.client_context(pair)
    try:
        with site.connect("any.test", port, context) as client:
            return client.request("GET", "/", "any.test").status
    except (OSError, NoResponse):
        return 0


def test_valid_client_certificate_is_demanded(
    site: TlsSite, authority: Authority, stranger: Authority
) -> None:
    """AllowValidOnly: with one of the authority it works, without one or with a stranger's it does not."""
    assert ask_with(site, site.valid_port, authority.issue(["client"], client=True)) == 200
    assert ask_with(site, site.valid_port, None) == 0
    assert ask_with(site, site.valid_port, stranger.issue(["client"], client=True)) == 0


def test_insecure_fallback_lets_all_in(
    site: TlsSite, authority: Authority, stranger: Authority
) -> None:
    """AllowInsecureFallback: asked for, but not demanded."""
    assert ask_with(site, site.insecure_port, authority.issue(["client"], client=True)) == 200
    assert ask_with(site, site.insecure_port, None) == 200
    assert ask_with(site, site.insecure_port, stranger.issue(["client"], client=True)) == 200


# --- swapping ---------------------------------------------------------------------------------------------------------


def test_certificate_swapped_under_traffic(site: TlsSite, authority: Authority) -> None:
    """New handshakes show the new one, open connections go on, no request fails."""
    stop = threading.Event()
    failures: list[str] = []

    def traffic() -> None:
        while not stop.is_set():
            try:
                with site.connect("a.test") as client:
                    for _ in range(3):
                        if client.request("GET", "/t", "a.test").status != 200:
                            failures.append("status")
            except (OSError, AssertionError) as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=traffic) for _ in range(3)]
    for thread in threads:
        thread.start()
    with site.connect("a.test") as steady:
        for _ in range(3):
            site.pairs["a"] = authority.issue(["a.test"])
            site.apply(site.build())
            with site.connect("a.test") as fresh:
                assert shown(fresh) == site.pairs["a"].serial
            assert steady.request("GET", "/steady", "a.test").status == 200
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[:5]
