"""What the authority signs: names, purposes, lives; and identities that are spelled in one way only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from controller.certs.authority import SKEW, make_authority
from controller.certs.identity import CONTROLLER, controller_uri, fleet_uri, identify
from controller.certs.issue import is_client_good, is_server_good, issue_client, issue_server
from controller.certs.pair import names_of, read_bundle, read_pair, signed_by, uris_of

pytestmark = pytest.mark.pure

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CA = make_authority("edge-gateway", NOW)
PLACE = {"namespace": "edge-gateway-system", "name": "edge-gateway", "domain": "cluster.local"}
FLEET = {"controller_namespace": "edge-gateway-system", "namespace": "ns", "name": "edge-a"}


def test_the_authority_signs_and_does_nothing_else() -> None:
    certificate = CA.certificate
    basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert basic.critical and basic.value.ca and basic.value.path_length == 0
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical and usage.value.key_cert_sign and not usage.value.digital_signature
    assert signed_by(certificate, certificate)
    assert isinstance(CA.key, ec.EllipticCurvePrivateKey) and CA.key.curve.name == "secp256r1"
    assert CA.certificate.subject != make_authority("edge-gateway", NOW).certificate.subject


def test_the_controllers_certificate() -> None:
    pair = issue_server(CA, now=NOW, **PLACE)
    assert names_of(pair.certificate) == (
        "edge-gateway",
        "edge-gateway.edge-gateway-system",
        "edge-gateway.edge-gateway-system.svc",
        "edge-gateway.edge-gateway-system.svc.cluster.local",
    )
    assert uris_of(pair.certificate) == (controller_uri("edge-gateway-system"),)
    usage = pair.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(usage) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert signed_by(pair.certificate, CA.certificate)
    assert pair.certificate.not_valid_before_utc == NOW - SKEW
    assert pair.expires == NOW + timedelta(days=365)
    assert is_server_good(pair, CA, **PLACE)
    for key in PLACE:
        assert not is_server_good(pair, CA, **{**PLACE, key: "other"})
    assert not is_server_good(pair, make_authority("x", NOW), **PLACE)
    assert not is_server_good(CA, CA, **PLACE)


def test_a_fleets_certificate() -> None:
    pair = issue_client(CA, now=NOW, **FLEET)
    uri = "edge://edge-gateway-system/fleet/ns/edge-a"
    assert uris_of(pair.certificate) == (uri,) and names_of(pair.certificate) == ()
    usage = pair.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(usage) == {ExtendedKeyUsageOID.CLIENT_AUTH}
    assert is_client_good(pair, CA, uri) and not is_client_good(pair, CA, uri + "b")
    assert not is_client_good(issue_server(CA, now=NOW, **PLACE), CA, uri)
    # Names of 63 characters fit.
    issue_client(CA, now=NOW, **{**FLEET, "name": "e" * 63, "namespace": "n" * 63})


def test_nothing_outlives_its_authority() -> None:
    late = NOW + timedelta(days=5 * 365 - 1)
    assert issue_client(CA, now=late, **FLEET).expires == CA.expires


def test_due_after_a_part_of_its_life() -> None:
    pair = issue_client(CA, now=NOW, **FLEET)
    assert not pair.is_due(NOW + timedelta(hours=47), 2 / 3)
    assert pair.is_due(NOW + timedelta(hours=48), 2 / 3)


def test_pairs_and_bundles_are_read_back_and_never_shown() -> None:
    pair = issue_client(CA, now=NOW, **FLEET)
    again = read_pair(pair.certificate_pem, pair.key_pem)
    assert again.certificate == pair.certificate
    assert "PRIVATE" not in repr(pair)
    other = issue_client(CA, now=NOW, **FLEET)
    for certificate, key in (
        (pair.certificate_pem, other.key_pem),
        (pair.certificate_pem, ""),
        ("", pair.key_pem),
        (pair.certificate_pem, pair.certificate_pem),
    ):
        with pytest.raises(ValueError) as error:
            read_pair(certificate, key)
        assert "-----" not in str(error.value)
    assert read_bundle(CA.certificate_pem * 2) == (CA.certificate, CA.certificate)
    for text in ("", "x", CA.certificate_pem[:200]):
        with pytest.raises(ValueError):
            read_bundle(text)


def test_identities() -> None:
    assert identify(fleet_uri("c", "ns", "edge-a"), "c") == "ns/edge-a"
    assert identify(controller_uri("c"), "c") == CONTROLLER
    for uri in (
        "",
        "edge://c",
        "edge://c/",
        "edge://d/controller",
        "edge://c/controller/",
        "edge://c/fleet/ns",
        "edge://c/fleet/ns/a/b",
        "edge://c/fleet//a",
        "edge://c/fleet/ns/",
        "edge://c/fleet/ns/A",
        "edge://c/fleet/ns/a%2Fb",
        "edge://c/fleet/ns/a\n",
        "edge://d/fleet/ns/a",
        "http://c/fleet/ns/a",
        "edge://c/other/ns/a",
    ):
        assert identify(uri, "c") is None, uri


def test_a_key_of_an_unknown_kind_is_refused_in_words() -> None:
    """A Secret may hold anything; what the library cannot read is an answer, not the end of the process."""
    key = "-----BEGIN PRIVATE KEY-----\nMA8CAQAwBQYDKgMEBAMBAgM=\n-----END PRIVATE KEY-----\n"
    with pytest.raises(ValueError, match="neither ECDSA nor RSA"):
        read_pair(CA.certificate_pem, key)
