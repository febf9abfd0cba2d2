"""TLS towards clients: which certificate answers whom, under which rules of its port."""

from __future__ import annotations

import ssl

import msgspec
import pytest

from edgefast import ir
from edgefast.proxy.tls.certificates import read_facts
from edgefast.proxy.tls.server import ServerPort, ServerTls, check_secret, load_secret
from proxy.tls.conftest import Serve
from proxy.tls.site import CA, OTHER_CA, adopt, client, listener, secret

A = secret("a", CA.issue("a.test"))
WILD = secret("w", CA.issue("*.w.test"))
ANY = secret("any", CA.issue("any.example", "deep.a.w.test"))
REFUSED = (ssl.SSLError, EOFError, ConnectionError)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.test", {"a.test"}),
        ("A.TEST", {"a.test"}),
        ("b.w.test", {"*.w.test"}),
        ("any.example", {"any.example", "deep.a.w.test"}),
    ],
)
def test_the_most_specific_listener_answers_a_name(
    serve: Serve, name: str, shown: set[str]
) -> None:
    group = [listener("*", "any"), listener("*.w.test", "w"), listener("a.test", "a")]
    server = serve(adopt(*group, a=A, w=WILD, any=ANY))
    trusting = client()
    trusting.check_hostname = name != "A.TEST"
    done = server.shake(trusting, name)
    assert done.names == shown
    assert done.client.selected_alpn_protocol() == "http/1.1"


def test_a_wildcard_listener_takes_deeper_names_but_not_its_parent(serve: Serve) -> None:
    server = serve(adopt(listener("*.w.test", "any"), any=ANY))
    assert server.shake(client(), "deep.a.w.test").names == {"any.example", "deep.a.w.test"}
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
        server.shake(client(), "w.test")


def test_a_name_without_listener_is_refused_and_so_is_no_name(serve: Serve) -> None:
    server = serve(adopt(listener("a.test", "a"), a=A))
    nameless = client()
    nameless.check_hostname = False
    for context, name in ((client(), "b.test"), (nameless, None)):
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
            server.shake(context, name)
    assert server.world.counters["handshakes_failed_name"] == 2


def test_no_name_reaches_the_listener_without_hostname(serve: Serve) -> None:
    server = serve(adopt(listener("*", "any"), listener("a.test", "a"), a=A, any=ANY))
    nameless = client()
    nameless.check_hostname = False
    assert server.shake(nameless, None).names == {"any.example", "deep.a.w.test"}


def test_a_listener_without_usable_certificate_refuses(serve: Serve) -> None:
    server = serve(adopt(listener("a.test", "missing"), a=A))
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
        server.shake(client(), "a.test")


def test_rsa_and_ecdsa_side_by_side(serve: Serve) -> None:
    both = {"r": secret("r", CA.issue("a.test", kind="rsa")), "e": secret("e", CA.issue("a.test"))}
    server = serve(adopt(listener("a.test", "r", "e"), **both))
    for ciphers, kind in (("ECDHE+aRSA", "rsa"), ("ECDHE+aECDSA", "ec")):
        picky = client()
        picky.maximum_version = ssl.TLSVersion.TLSv1_2
        picky.set_ciphers(ciphers)
        der = server.shake(picky, "a.test").client.getpeercert(binary_form=True)
        assert der is not None
        assert read_facts(ssl.DER_cert_to_PEM_cert(der).encode()).kind == kind


def test_several_certificates_of_one_kind_are_chosen_by_name(serve: Serve) -> None:
    named = {name: secret(name, CA.issue(f"{name}.w.test")) for name in ("a", "b", "c")}
    server = serve(adopt(listener("*.w.test", "a", "b", "c"), **named))
    assert server.shake(client(), "c.w.test").names == {"c.w.test"}
    assert server.shake(client(), "b.w.test").names == {"b.w.test"}
    trusting = client()
    trusting.check_hostname = False
    assert server.shake(trusting, "unknown.w.test").names == {"a.w.test"}


def test_a_kind_that_does_not_cover_the_name_does_not_win(serve: Serve) -> None:
    mixed = {
        "e": secret("e", CA.issue("other.test")),
        "r": secret("r", CA.issue("a.test", kind="rsa")),
    }
    server = serve(adopt(listener("*", "e", "r"), **mixed))
    assert server.shake(client(), "a.test").names == {"a.test"}


def test_a_new_certificate_serves_new_handshakes_on_the_same_port(serve: Serve) -> None:
    tls = ServerTls()
    port = tls.adopt([listener("a.test", "a")], {"a": A}, frozenset({"a"}))[443, ()]
    server = serve(port)
    assert server.shake(client(), "a.test").names == {"a.test"}
    renewed = secret("a", CA.issue("a.test", "new.test"))
    assert tls.adopt([listener("a.test", "a")], {"a": renewed}, frozenset({"a"}))[443, ()] is port
    assert server.shake(client(), "a.test").names == {"a.test", "new.test"}


def test_an_unchanged_listener_keeps_its_contexts() -> None:
    tls = ServerTls()
    listeners = [listener("a.test", "a"), listener("*.w.test", "w")]
    port = tls.adopt(listeners, {"a": A, "w": WILD}, frozenset({"a", "w"}))[443, ()]
    kept, other = port.choose("b.w.test"), port.choose("a.test")
    assert tls.adopt(listeners, {"a": A, "w": WILD}, frozenset({"a"}))[443, ()] is port
    assert port.choose("b.w.test") is kept
    assert port.choose("a.test") is not other


def test_versions_belong_to_the_port(serve: Serve) -> None:
    old = client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    serve(adopt(listener("a.test", "a"), a=A)).shake(old, "a.test")
    strict = serve(adopt(listener("a.test", "a", min_version="1.3"), a=A))
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL"):
        strict.shake(old, "a.test")
    strict.shake(client(), "a.test")
    assert strict.world.counters["handshakes_failed_version"] == 1


@pytest.mark.usefixtures("tickets")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(serve: Serve, version: ssl.TLSVersion) -> None:
    server = serve(adopt(listener("*.w.test", "w"), listener("a.test", "a"), a=A, w=WILD))
    context = client()
    context.maximum_version = version
    first = server.shake(context, "b.w.test")
    assert not first.reused
    assert server.shake(context, "b.w.test", first.session).reused


@pytest.mark.usefixtures("tickets")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_resumed_under_its_own_rules_alone(
    serve: Serve, version: ssl.TLSVersion
) -> None:
    """CVE-2025-23419: not at another listener, nor where another version, CA, mode or port holds."""
    secrets = {
        "a": A,
        "any": ANY,
        "ca": ir.Secret(name="ca", ca=CA.bundle),
        "other": ir.Secret(name="other", ca=OTHER_CA.bundle),
    }

    def port(number: int = 443, *addresses: str, **rules: object) -> ServerPort:
        one = listener("a.test", "a", port=number, **rules)
        one = msgspec.structs.replace(one, addresses=addresses)
        return ServerTls().adopt([one], secrets, frozenset(secrets))[number, addresses]

    def reuses(session: ssl.SSLSession | None, name: str = "a.test") -> bool:
        return server.shake(context, name, session).reused

    context = client()
    context.maximum_version = version
    context.check_hostname = False
    server = serve(adopt(listener("a.test", "a"), listener("*", "any"), **secrets))
    session = server.shake(context, "a.test").session
    assert reuses(session)
    assert not reuses(session, "any.example")
    server.port = port(443, "127.0.0.1")
    assert not reuses(session)
    server.port = port(444)
    assert not reuses(session)
    assert reuses(server.shake(context, "a.test").session)
    server.port = port(client_ca="ca", client_insecure_fallback=True)
    assert not reuses(session)
    assert not reuses(server.shake(context, "a.test").session)
    server.port = port(client_ca="ca")
    with pytest.raises(REFUSED):
        reuses(session)
    context = client(pair=CA.issue("someone"))
    context.maximum_version = version
    verified = server.shake(context, "a.test").session
    assert not reuses(verified)  # it shows its certificate each time
    server.port = port(client_ca="other")
    with pytest.raises(REFUSED):
        reuses(verified)


# --- client certificates ------------------------------------------------------------------------------


def test_client_certificates_are_required_and_verified(serve: Serve) -> None:
    bundle = ir.Secret(name="ca", ca=CA.bundle)
    server = serve(adopt(listener("a.test", "a", client_ca="ca"), a=A, ca=bundle))
    server.shake(client(pair=CA.issue("someone")), "a.test")
    for pair in (None, OTHER_CA.issue("someone")):
        with pytest.raises(REFUSED):
            server.shake(client(pair=pair), "a.test")
    assert server.world.counters["handshakes_failed_certificate"] == 2


def test_the_insecure_fallback_lets_everybody_in(serve: Serve) -> None:
    bundle = ir.Secret(name="ca", ca=CA.bundle)
    one = listener("a.test", "a", client_ca="ca", client_insecure_fallback=True)
    server = serve(adopt(one, a=A, ca=bundle))
    for pair in (None, CA.issue("someone"), OTHER_CA.issue("someone")):
        assert server.shake(client(pair=pair), "a.test").asked
    assert not serve(adopt(listener("a.test", "a"), a=A)).shake(client(), "a.test").asked


def test_the_insecure_fallback_asks_with_contexts_that_came_with_secrets_too(serve: Serve) -> None:
    bundle = ir.Secret(name="ca", ca=CA.bundle)
    one = listener("a.test", "a", client_ca="ca", client_insecure_fallback=True)
    loaded = {"a": context} if (context := load_secret(A)) is not None else {}
    secrets = {"a": A, "ca": bundle}
    ports = ServerTls().adopt([one], secrets, frozenset(secrets), loaded)
    assert serve(ports[443, ()]).shake(client(pair=CA.issue("someone")), "a.test").asked


def test_a_missing_bundle_closes_the_port(serve: Serve) -> None:
    server = serve(adopt(listener("a.test", "a", client_ca="missing"), a=A))
    with pytest.raises(REFUSED):
        server.shake(client(pair=CA.issue("someone")), "a.test")


def test_another_bundle_makes_another_port(serve: Serve) -> None:
    tls = ServerTls()
    one = listener("a.test", "a", client_ca="ca")
    before = {"a": A, "ca": ir.Secret(name="ca", ca=CA.bundle)}
    first = tls.adopt([one], before, frozenset(before))[443, ()]
    after = {"a": A, "ca": ir.Secret(name="ca", ca=OTHER_CA.bundle)}
    second = tls.adopt([one], after, frozenset({"ca"}))[443, ()]
    assert second is not first
    server = serve(second)
    server.shake(client(pair=OTHER_CA.issue("someone")), "a.test")
    with pytest.raises(REFUSED):
        server.shake(client(pair=CA.issue("someone")), "a.test")


# --- client certificates of one listener --------------------------------------------------------------


def test_a_rule_of_one_listener_asks_there_alone(serve: Serve) -> None:
    """Handshakes succeed with any certificate, and without one; requests are checked later."""
    bundle = ir.Secret(name="ca", ca=CA.bundle)
    rule = ir.ClientRule(ca="ca")
    other = secret("other", CA.issue("b.test"))
    listeners = (listener("a.test", "a", client_rule=rule), listener("b.test", "other"))
    server = serve(adopt(*listeners, a=A, ca=bundle, other=other))
    for pair in (None, CA.issue("someone"), OTHER_CA.issue("someone")):
        assert server.shake(client(pair=pair), "a.test").asked
    assert not server.shake(client(), "b.test").asked


def test_other_authorities_of_one_listener_make_another_port() -> None:
    """Connections of the old port end (HttpSettings.tls_drain)."""
    tls, rule = ServerTls(), ir.ClientRule(ca="ca")
    one = listener("a.test", "a", client_rule=rule)
    secrets = {"a": A, "ca": ir.Secret(name="ca", ca=CA.bundle)}
    first = tls.adopt([one], secrets, frozenset(secrets))[443, ()]
    assert tls.adopt([one], secrets, frozenset({"a"}))[443, ()] is first
    secrets = {**secrets, "ca": ir.Secret(name="ca", ca=OTHER_CA.bundle)}
    assert tls.adopt([one], secrets, frozenset({"ca"}))[443, ()] is not first


def test_a_secret_with_an_invalid_revocation_list_is_refused() -> None:
    assert check_secret(ir.Secret(name="ca", ca=CA.bundle, crl=b"no list"))
