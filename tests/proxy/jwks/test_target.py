"""Where keys are fetched from: what a uri may be, and who may answer for it."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import pytest

from edgefast import ir
from edgefast.ir.credentials import RemoteKeys
from edgefast.proxy.jwks.target import Target, TargetError, find_target, shows
from proxy.pki import Authority

pytestmark = pytest.mark.pure

AUTHORITY = Authority()
PAIR = AUTHORITY.issue("client.test")
SECRETS = {
    "ca": ir.Secret("ca", ca=AUTHORITY.bundle),
    "empty": ir.Secret("empty"),
    "pair": ir.Secret("pair", certificate=PAIR.certificate, private_key=PAIR.key),
}
ENDPOINTS = (
    ir.Endpoint("10.0.0.1", 80),
    ir.Endpoint(hostname="idp.test", port=81),
    ir.Endpoint("/run/idp"),
)


def find(uri: str, cluster: ir.Cluster | None = None, name: str = "") -> Target:
    return find_target(RemoteKeys(uri, cluster.name if cluster else name), cluster, SECRETS.get)


def cluster(**more: Any) -> ir.Cluster:
    return ir.Cluster(name="c", **{"endpoints": ENDPOINTS, **more})


def test_a_uri_alone() -> None:
    target = find("https://idp.example.com/keys?v=1#x")
    assert target[:3] == ("idp.example.com", "/keys?v=1", (("idp.example.com", 443),))
    assert target.tls is not None and target.tls.check_hostname
    assert target.tls.verify_mode is ssl.CERT_REQUIRED
    assert target.server_name == "idp.example.com"
    other = find("https://[2001:db8::1]:8443")
    assert other[:3] == ("[2001:db8::1]:8443", "/", (("2001:db8::1", 8443),))


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://idp.example.com/keys", "fetched with https"),
        ("ftp://idp.example.com/keys", "not a valid https URL"),
        ("file:///etc/passwd", "not a valid https URL"),
        ("https:///keys", "not a valid https URL"),
        ("keys", "not a valid https URL"),
        ("", "not a valid https URL"),
        ("https://idp.example.com:port/", "not a URL"),
        ("https://idp.example.com:99999/", "not a URL"),
        ("https://[::1/", "not a URL"),
        ("https://user:pass@idp.example.com/", "contains a user"),
        ("https://user@idp.example.com/", "contains a user"),
        ("https://idp.example.com/\r\nx: y", "not a URL"),
        ("https://idp.example.com/a b", "not a valid https URL"),
        ("https://idp.ex\u00e4mple.com/", "not a URL"),
        ("https://idp.example.com/" + "a" * 2048, "not a URL"),
    ],
)
def test_uris_that_are_none(uri: str, said: str) -> None:
    with pytest.raises(TargetError, match=said) as error:
        find(uri)
    assert "pass" not in str(error.value)


def test_a_cluster_of_http() -> None:
    target = find("http://idp.ns/keys", cluster(fallback=(ir.Endpoint("10.0.0.9", 1),) * 3))
    assert target.places == (("10.0.0.1", 80), ("idp.test", 81), ("/run/idp", -1), ("10.0.0.9", 1))
    assert (target.tls, target.authority, target.path) == (None, "idp.ns", "/keys")


def test_https_stays_https_whatever_the_cluster_is() -> None:
    target = find("https://idp.ns/keys", cluster())
    assert target.tls is not None and target.tls.check_hostname and target.server_name == "idp.ns"


def test_a_cluster_of_tls() -> None:
    tls = ir.UpstreamTls(sni="inner.test", ca="ca", certificate="pair")
    for uri in ("https://idp.ns/keys", "http://idp.ns/keys"):
        target = find(uri, cluster(tls=tls))
        assert target.tls is not None and target.tls.check_hostname
        assert target.server_name == "inner.test"
        (authority,) = target.tls.get_ca_certs()
        assert authority["subject"] == ((("commonName", "test CA"),),)
    named = ir.UpstreamTls(sni="inner.test", ca="ca", sans=(("Hostname", "x.test"),))
    target = find("https://idp.ns/keys", cluster(tls=named))
    assert target.tls is not None and not target.tls.check_hostname
    assert target.tls.verify_mode is ssl.CERT_REQUIRED and target.sans == named.sans


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"endpoints": ()}, "c has no endpoints"),
        ({"tls": ir.UpstreamTls(sni="x.test", insecure=True)}, "does not verify certificates"),
        ({"protocol": "h2"}, "only HTTP/2"),
        ({"tls": ir.UpstreamTls(sni="x", ca="gone")}, "gone not found"),
        ({"tls": ir.UpstreamTls(sni="x", ca="empty")}, "empty has no readable certificates"),
        ({"tls": ir.UpstreamTls(sni="x", certificate="gone")}, "gone not found"),
        ({"tls": ir.UpstreamTls(sni="x", certificate="empty")}, "empty cannot be loaded"),
    ],
)
def test_clusters_that_cannot_be_asked(more: dict[str, Any], said: str) -> None:
    with pytest.raises(TargetError, match=said):
        find("https://idp.ns/keys", cluster(**more))


def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(TargetError, match="c not found"):
        find("http://idp.ns/keys", None, "c")


@pytest.mark.parametrize(
    ("names", "sans", "good"),
    [
        ([("DNS", "a.test")], [("Hostname", "A.test")], True),
        ([("DNS", "*.b.test")], [("Hostname", "a.b.test")], True),
        ([("DNS", "*.b.test")], [("Hostname", "b.test")], False),
        ([("DNS", "*.b.test")], [("Hostname", "x.a.b.test")], False),
        ([("DNS", "a.test")], [("Hostname", "b.test"), ("Hostname", "a.test")], True),
        ([("URI", "spiffe://x/y")], [("URI", "spiffe://x/y")], True),
        ([("URI", "spiffe://x/y")], [("URI", "spiffe://X/y")], False),
        ([("URI", "a.test")], [("Hostname", "a.test")], False),
        ([("DNS", "a.test")], [("URI", "a.test")], False),
        ([], [("Hostname", "a.test")], False),
    ],
)
def test_names_of_certificates(
    names: Iterable[tuple[str, str]], sans: Iterable[tuple[ir.NameType, str]], good: bool
) -> None:
    assert shows(names, sans) is good
