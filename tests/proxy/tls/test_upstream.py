"""TLS towards backends: who is believed, and what is shown to them."""

from __future__ import annotations

import ssl

import msgspec
import pytest

from core.backend import say
from core.fleets import make_cluster, make_fleet
from core.world import World
from edgefast import ir
from edgefast.proxy.tls.upstream import UpstreamContexts, UpstreamTlsError
from proxy.pki import Pair
from proxy.tls.site import CA, OTHER_CA, load, secret, within_deadline

SECRETS = {
    "ca": ir.Secret(name="ca", ca=CA.bundle),
    "other": ir.Secret(name="other", ca=OTHER_CA.bundle),
    "own": secret("own", CA.issue("gateway")),
    "bad": ir.Secret(name="bad", ca=b"x"),
}


def backend(pair: Pair, client_ca: bytes = b"") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, pair)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.decode())
    return context


def connect(pair: Pair, tls: ir.UpstreamTls, client_ca: bytes = b"") -> bool:
    """Whether a request reaches this backend and its answer the client."""
    world = World(upstream_tls=UpstreamContexts(SECRETS))

    async def ask() -> bool:
        origin = await world.backend(say("x"), backend(pair, client_ca))
        port = await world.serve(make_fleet(make_cluster(origin.port, tls=tls)))
        answer = await (await world.client(port)).get()
        assert answer.status in (200, 502, 503)
        assert (answer.status == 200) == (origin.count > 0), (
            "no byte of a request before the verdict"
        )
        await world.finish()
        return answer.status == 200

    try:
        return bool(world.loop.run_until_complete(within_deadline(ask())))
    finally:
        world.close()


@pytest.mark.parametrize(
    ("names", "tls", "accepted"),
    [
        (("b.test",), ir.UpstreamTls(sni="b.test", ca="ca"), True),
        (("*.b.test",), ir.UpstreamTls(sni="a.b.test", ca="ca"), True),
        (("127.0.0.1",), ir.UpstreamTls(sni="127.0.0.1", ca="ca"), True),
        (("127.0.0.2",), ir.UpstreamTls(sni="127.0.0.1", ca="ca"), False),
        (("c.test",), ir.UpstreamTls(sni="b.test", ca="ca"), False),
        (("b.test",), ir.UpstreamTls(sni="b.test", ca="other"), False),
        (("b.test",), ir.UpstreamTls(sni="b.test"), False),  # the system's bundle
    ],
)
def test_backends_are_verified_by_chain_and_name(
    names: tuple[str, ...], tls: ir.UpstreamTls, accepted: bool
) -> None:
    assert connect(CA.issue(*names), tls) is accepted


@pytest.mark.parametrize("names", [(), ("127.0.0.1",)])
def test_a_common_name_names_nobody(names: tuple[str, ...]) -> None:
    """RFC 9110 4.3.4: only subjectAltNames count, also in a certificate without one."""
    pair = CA.issue(*names, common="b.test")
    assert not connect(pair, ir.UpstreamTls(sni="b.test", ca="ca"))


@pytest.mark.parametrize(
    ("sans", "accepted"),
    [
        ((("Hostname", "c.test"),), True),
        ((("Hostname", "x.wild.test"),), True),
        ((("Hostname", "x.y.wild.test"),), False),
        ((("Hostname", "wild.test"),), False),
        ((("Hostname", "b.test"),), False),
        ((("URI", "spiffe://t/ns/a"),), True),
        ((("URI", "spiffe://t/ns/b"), ("Hostname", "C.test")), True),
        ((("URI", "spiffe://t/ns"),), False),
        ((("Hostname", "spiffe://t/ns/a"),), False),
        ((("URI", "c.test"),), False),
    ],
)
def test_subject_alt_names_replace_the_name(
    sans: tuple[tuple[str, str], ...], accepted: bool
) -> None:
    pair = CA.issue("c.test", "*.wild.test", uris=("spiffe://t/ns/a",))
    tls = ir.UpstreamTls(sni="b.test", ca="ca", sans=sans)  # type: ignore[arg-type]
    assert connect(pair, tls) is accepted


def test_subject_alt_names_do_not_replace_the_chain() -> None:
    tls = ir.UpstreamTls(sni="b.test", ca="other", sans=(("Hostname", "c.test"),))
    assert not connect(CA.issue("c.test"), tls)


@pytest.mark.parametrize("ca", ["", "other"])
def test_an_insecure_cluster_accepts_every_certificate(ca: str) -> None:
    """Another authority and another name; it still shows a certificate of its own."""
    tls = ir.UpstreamTls(sni="b.test", ca=ca, certificate="own", insecure=True)
    assert connect(CA.issue("c.test"), tls, CA.bundle)
    assert not connect(CA.issue("c.test"), msgspec.structs.replace(tls, insecure=False), CA.bundle)


def test_a_backend_may_ask_for_a_certificate() -> None:
    pair = CA.issue("b.test")
    assert connect(pair, ir.UpstreamTls(sni="b.test", ca="ca", certificate="own"), CA.bundle)
    assert not connect(pair, ir.UpstreamTls(sni="b.test", ca="ca"), CA.bundle)


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
