"""TLS towards clients and backends: handshakes in memory, both ends in this process."""

from __future__ import annotations

import os
import ssl

import pytest
from cryptography import x509

from edgefast import ir
from edgefast.proxy.tls.certificates import PemError, load_pair, read_facts
from edgefast.proxy.tls.server import ServerTls, certificate_covers, check_secret
from edgefast.proxy.tls.upstream import UpstreamContexts, UpstreamTlsError
from proxy.pki import EXPIRES, Authority, Pair, encrypted

pytestmark = pytest.mark.pure

CA = Authority()
OTHER_CA = Authority("other CA")


def secret(name: str, pair: Pair, ca: bytes = b"") -> ir.Secret:
    return ir.Secret(name=name, certificate=pair.certificate, private_key=pair.key, ca=ca)


def listener(hostname: str, *certificates: str, port: int = 443, **tls: object) -> ir.Listener:
    return ir.Listener(
        name=f"default/gateway/{hostname}",
        port=port,
        bind_port=port,
        protocol="HTTPS",
        hostname=hostname,
        tls=ir.ListenerTls(certificates=certificates, **tls),  # type: ignore[arg-type]
    )


class Handshake:
    """What both ends know after a handshake."""

    def __init__(
        self,
        server: ssl.SSLContext,
        client: ssl.SSLContext,
        name: str | None,
        session: ssl.SSLSession | None = None,
    ) -> None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(to_server, to_client, server_side=True)
        self.client = client.wrap_bio(to_client, to_server, server_hostname=name, session=session)
        ends = [self.client, self.server]
        for _ in range(20):
            for end in list(ends):
                try:
                    end.do_handshake()
                    ends.remove(end)
                except ssl.SSLWantReadError:
                    pass
            if not ends:
                break
        assert not ends
        # TLS 1.3: the server's tickets and its verdict on the client's certificate come after.
        self.server.write(b"hello")
        assert self.client.read(5) == b"hello"

    @property
    def names(self) -> set[str]:
        """DNS names of the certificate that the server showed."""
        der = self.client.getpeercert(binary_form=True)
        assert der is not None
        certificate = x509.load_der_x509_certificate(der)
        san = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return set(san.value.get_values_for_type(x509.DNSName))


def client(bundle: bytes = CA.bundle, pair: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=bundle.decode())
    context.set_alpn_protocols(["h2", "http/1.1"])
    if pair is not None:
        load_pair(context, pair.certificate, pair.key)
    return context


def adopt(*listeners: ir.Listener, **secrets: ir.Secret) -> ssl.SSLContext:
    contexts = ServerTls().adopt(listeners, secrets, frozenset(secrets))
    assert list(contexts) == [443]
    return contexts[443]


A = secret("a", CA.issue("a.test"))
WILD = secret("w", CA.issue("*.w.test"))
ANY = secret("any", CA.issue("any.example", "deep.a.w.test"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.test", {"a.test"}),
        ("A.TEST", {"a.test"}),
        ("b.w.test", {"*.w.test"}),
        ("any.example", {"any.example", "deep.a.w.test"}),
    ],
)
def test_the_most_specific_listener_answers_a_name(name: str, shown: set[str]) -> None:
    server = adopt(
        listener("*", "any"),
        listener("*.w.test", "w"),
        listener("a.test", "a"),
        a=A,
        w=WILD,
        any=ANY,
    )
    done = Handshake(server, client(), name)
    assert done.names == shown
    assert vars(done.server)["sni"] == name.lower()
    assert done.client.selected_alpn_protocol() == "http/1.1"


def test_a_wildcard_listener_takes_deeper_names_but_not_its_parent() -> None:
    server = adopt(listener("*.w.test", "any"), any=ANY)
    assert Handshake(server, client(), "deep.a.w.test").names == {"any.example", "deep.a.w.test"}
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME|CALLBACK_FAILED"):
        Handshake(server, client(), "w.test")


def test_a_name_without_listener_is_refused_and_so_is_no_name() -> None:
    server = adopt(listener("a.test", "a"), a=A)
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME|CALLBACK_FAILED"):
        Handshake(server, client(), "b.test")
    nameless = client()
    nameless.check_hostname = False
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME|CALLBACK_FAILED"):
        Handshake(server, nameless, None)


def test_no_name_reaches_the_listener_without_hostname() -> None:
    server = adopt(listener("*", "any"), listener("a.test", "a"), a=A, any=ANY)
    nameless = client()
    nameless.check_hostname = False
    done = Handshake(server, nameless, None)
    assert done.names == {"any.example", "deep.a.w.test"}
    assert vars(done.server)["sni"] == ""


def test_a_listener_without_usable_certificate_refuses() -> None:
    server = adopt(listener("a.test", "missing"), a=A)
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME|CALLBACK_FAILED"):
        Handshake(server, client(), "a.test")


def test_rsa_and_ecdsa_side_by_side() -> None:
    both = {"r": secret("r", CA.issue("a.test", kind="rsa")), "e": secret("e", CA.issue("a.test"))}
    server = adopt(listener("a.test", "r", "e"), **both)
    for ciphers, kind in (("ECDHE+aRSA", "rsa"), ("ECDHE+aECDSA", "ec")):
        picky = client()
        picky.maximum_version = ssl.TLSVersion.TLSv1_2
        picky.set_ciphers(ciphers)
        done = Handshake(server, picky, "a.test")
        der = done.client.getpeercert(binary_form=True)
        assert der is not None
        assert read_facts(ssl.DER_cert_to_PEM_cert(der).encode()).kind == kind


def test_several_certificates_of_one_kind_are_chosen_by_name() -> None:
    named = {name: secret(name, CA.issue(f"{name}.w.test")) for name in ("a", "b", "c")}
    server = adopt(listener("*.w.test", "a", "b", "c"), **named)
    assert Handshake(server, client(), "c.w.test").names == {"c.w.test"}
    assert Handshake(server, client(), "b.w.test").names == {"b.w.test"}
    trusting = client()
    trusting.check_hostname = False
    assert Handshake(server, trusting, "unknown.w.test").names == {"a.w.test"}


def test_a_kind_that_does_not_cover_the_name_does_not_win() -> None:
    mixed = {
        "e": secret("e", CA.issue("other.test")),
        "r": secret("r", CA.issue("a.test", kind="rsa")),
    }
    assert Handshake(adopt(listener("*", "e", "r"), **mixed), client(), "a.test").names == {
        "a.test"
    }


def test_a_new_certificate_serves_new_handshakes_on_the_same_context() -> None:
    tls = ServerTls()
    ports = tls.adopt([listener("a.test", "a")], {"a": A}, frozenset({"a"}))
    first = Handshake(ports[443], client(), "a.test")
    renewed = secret("a", CA.issue("a.test", "new.test"))
    again = tls.adopt([listener("a.test", "a")], {"a": renewed}, frozenset({"a"}))
    assert again[443] is ports[443]
    assert Handshake(again[443], client(), "a.test").names == {"a.test", "new.test"}
    first.server.write(b"still")
    assert first.client.read(5) == b"still"


def test_an_unchanged_listener_keeps_its_contexts() -> None:
    tls = ServerTls()
    listeners = [listener("a.test", "a"), listener("*.w.test", "w")]
    tls.adopt(listeners, {"a": A, "w": WILD}, frozenset({"a", "w"}))
    kept = tls._ports[443]._listeners["*.w.test"]
    tls.adopt(listeners, {"a": A, "w": WILD}, frozenset({"a"}))
    assert tls._ports[443]._listeners["*.w.test"] is kept


def test_versions_belong_to_the_port() -> None:
    old = client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    Handshake(adopt(listener("a.test", "a"), a=A), old, "a.test")
    strict = adopt(listener("a.test", "a", min_version="1.3"), a=A)
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL"):
        Handshake(strict, old, "a.test")
    Handshake(strict, client(), "a.test")


def test_sessions_are_resumed() -> None:
    server = adopt(listener("*.w.test", "w"), listener("a.test", "a"), a=A, w=WILD)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = client()
        context.maximum_version = version
        first = Handshake(server, context, "b.w.test")
        assert not first.client.session_reused
        second = Handshake(server, context, "b.w.test", first.client.session)
        assert second.client.session_reused
        assert vars(second.server)["sni"] == "b.w.test"


# --- client certificates ------------------------------------------------------------------------------


def test_client_certificates_are_required_and_verified() -> None:
    bundle = ir.Secret(name="ca", ca=CA.bundle)
    server = adopt(listener("a.test", "a", client_ca="ca"), a=A, ca=bundle)
    Handshake(server, client(pair=CA.issue("someone")), "a.test")
    for pair in (None, OTHER_CA.issue("someone")):
        with pytest.raises(ssl.SSLError):
            Handshake(server, client(pair=pair), "a.test")


def test_the_insecure_fallback_lets_everybody_in() -> None:
    bundle = ir.Secret(name="ca", ca=CA.bundle)
    one = listener("a.test", "a", client_ca="ca", client_insecure_fallback=True)
    server = adopt(one, a=A, ca=bundle)
    for pair in (None, CA.issue("someone"), OTHER_CA.issue("someone")):
        shown = Handshake(server, client(pair=pair), "a.test").server.getpeercert(binary_form=True)
        assert (shown is not None) == (pair is not None), "everybody is asked"


def test_a_missing_bundle_closes_the_port() -> None:
    server = adopt(listener("a.test", "a", client_ca="missing"), a=A)
    with pytest.raises(ssl.SSLError):
        Handshake(server, client(pair=CA.issue("someone")), "a.test")


def test_another_bundle_makes_another_context() -> None:
    tls = ServerTls()
    one = listener("a.test", "a", client_ca="ca")
    before = {"a": A, "ca": ir.Secret(name="ca", ca=CA.bundle)}
    first = tls.adopt([one], before, frozenset(before))[443]
    after = {"a": A, "ca": ir.Secret(name="ca", ca=OTHER_CA.bundle)}
    second = tls.adopt([one], after, frozenset({"ca"}))[443]
    assert second is not first
    Handshake(second, client(pair=OTHER_CA.issue("someone")), "a.test")
    with pytest.raises(ssl.SSLError):
        Handshake(second, client(pair=CA.issue("someone")), "a.test")


# --- key material -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        (Pair(CA.issue("a").certificate, CA.issue("b").key), "does not belong"),
        (Pair(b"rubbish", CA.issue("b").key), "certificate is not PEM"),
        (Pair(CA.issue("a").certificate, b"rubbish"), "private key is not PEM"),
        (Pair(CA.issue("a").certificate, b"-----BEGIN PRIVATE KEY-----\nAAAA\n"), "not usable"),
        (encrypted(CA.issue("a")), "encrypted"),
    ],
)
def test_unusable_pairs_say_why_and_show_no_key(pair: Pair, why: str) -> None:
    error = check_secret(secret("s", pair))
    assert error is not None
    assert why in error
    assert "BEGIN" not in error


def test_an_unusable_bundle_says_so() -> None:
    assert check_secret(ir.Secret(name="ca", ca=b"rubbish")) is not None
    assert check_secret(ir.Secret(name="ca", ca=CA.bundle + OTHER_CA.bundle)) is None


def test_keys_leave_no_file_and_no_descriptor() -> None:
    before = set(os.listdir("/proc/self/fd"))
    assert check_secret(A) is None
    assert set(os.listdir("/proc/self/fd")) == before


def test_facts() -> None:
    facts = read_facts(CA.issue("A.test", "*.b.test").certificate)
    assert (facts.kind, facts.names) == ("ec", ("a.test", "*.b.test"))
    assert facts.expires == EXPIRES.timestamp()
    with pytest.raises(PemError):
        read_facts(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


@pytest.mark.parametrize(
    ("name", "host", "covered"),
    [
        ("a.test", "a.test", True),
        ("*.test", "a.test", True),
        ("*.test", "b.a.test", False),
        ("*.test", "test", False),
        ("*", "test", False),
        ("a.test", "b.test", False),
    ],
)
def test_names_in_certificates(name: str, host: str, covered: bool) -> None:
    assert certificate_covers([name], host) is covered


# --- backends -----------------------------------------------------------------------------------------


def backend(pair: Pair, client_ca: bytes = b"") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, pair.certificate, pair.key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.decode())
    return context


SECRETS = {
    "ca": ir.Secret(name="ca", ca=CA.bundle),
    "other": ir.Secret(name="other", ca=OTHER_CA.bundle),
    "own": secret("own", CA.issue("gateway")),
    "bad": ir.Secret(name="bad", ca=b"x"),
}


def connect(pair: Pair, tls: ir.UpstreamTls, client_ca: bytes = b"") -> Handshake:
    return Handshake(backend(pair, client_ca), UpstreamContexts(SECRETS)(tls), tls.sni)


def test_backends_are_verified_by_chain_and_name() -> None:
    connect(CA.issue("b.test"), ir.UpstreamTls(sni="b.test", ca="ca"))
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(CA.issue("c.test"), ir.UpstreamTls(sni="b.test", ca="ca"))
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(CA.issue("b.test"), ir.UpstreamTls(sni="b.test", ca="other"))
    with pytest.raises(ssl.SSLCertVerificationError):  # the system's bundle does not know it
        connect(CA.issue("b.test"), ir.UpstreamTls(sni="b.test"))


@pytest.mark.parametrize(
    ("sans", "accepted"),
    [
        ((("Hostname", "c.test"),), True),
        ((("Hostname", "x.wild.test"),), True),
        ((("Hostname", "b.test"),), False),
        ((("URI", "spiffe://t/ns/a"),), True),
        ((("URI", "spiffe://t/ns/b"), ("Hostname", "c.test")), True),
        ((("URI", "spiffe://t/ns"),), False),
        ((("Hostname", "spiffe://t/ns/a"),), False),
    ],
)
def test_subject_alt_names_replace_the_name(
    sans: tuple[tuple[str, str], ...], accepted: bool
) -> None:
    pair = CA.issue("c.test", "*.wild.test", uris=("spiffe://t/ns/a",))
    tls = ir.UpstreamTls(sni="b.test", ca="ca", sans=sans)  # type: ignore[arg-type]
    if accepted:
        connect(pair, tls)
    else:
        with pytest.raises(ssl.SSLCertVerificationError, match="subjectAltName"):
            connect(pair, tls)


def test_a_backend_may_ask_for_a_certificate() -> None:
    pair = CA.issue("b.test")
    connect(pair, ir.UpstreamTls(sni="b.test", ca="ca", certificate="own"), CA.bundle)
    with pytest.raises(ssl.SSLError):
        connect(pair, ir.UpstreamTls(sni="b.test", ca="ca"), CA.bundle)


def test_contexts_are_shared_and_follow_their_secrets() -> None:
    contexts = UpstreamContexts(SECRETS)
    first = contexts(ir.UpstreamTls(sni="a.test", ca="ca"))
    assert contexts(ir.UpstreamTls(sni="b.test", ca="ca")) is first
    contexts.adopt(SECRETS, frozenset({"own"}))
    assert contexts(ir.UpstreamTls(sni="a.test", ca="ca")) is first
    contexts.adopt(SECRETS, frozenset({"ca"}))
    assert contexts(ir.UpstreamTls(sni="a.test", ca="ca")) is not first


@pytest.mark.parametrize("name", ["missing", "bad"])
def test_unusable_settings_never_become_an_unverified_connection(name: str) -> None:
    with pytest.raises(UpstreamTlsError):
        UpstreamContexts(SECRETS)(ir.UpstreamTls(sni="a.test", ca=name))
