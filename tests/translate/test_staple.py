"""OCSP responses beside certificates: what is stapled, and what is told of those that are not."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import ocsp
from cryptography.x509.oid import NameOID

from edgefast import ir
from edgefast.api.snapshot import Snapshot
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from edgefast.translate.tls.staple import MAX_STAPLE, Staple, parse_staple
from tests.translate.world import gateway, gateway_class, make

pytestmark = pytest.mark.pure

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
NOW = int((START + DAY).timestamp())
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


class Authority:
    """An issuer of certificates and of what is said about them."""

    def __init__(self, key: Key | None = None, name: str = "authority") -> None:
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key, 1)

    def _sign(self, subject: x509.Name, key: Key, serial: int) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(serial)
            .not_valid_before(START)
            .not_valid_after(START + 365 * DAY)
        )
        return builder.sign(self.key, self._digest)

    @property
    def _digest(self) -> hashes.SHA256 | None:
        return None if isinstance(self.key, ed25519.Ed25519PrivateKey) else hashes.SHA256()

    def issue(self, serial: int = 7) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.example")])
        return Pair(self._sign(subject, key, serial), key, self)

    def respond(self, pair: Pair, **more: Any) -> bytes:
        """Say that a certificate is good, unless `more` says otherwise."""
        said = {
            "algorithm": hashes.SHA1(),
            "cert_status": ocsp.OCSPCertStatus.GOOD,
            "this_update": START,
            "next_update": START + 7 * DAY,
            "revocation_time": None,
            "revocation_reason": None,
            **more,
        }
        builder = ocsp.OCSPResponseBuilder().add_response(
            cert=pair.certificate, issuer=self.certificate, **said
        )
        builder = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, self.certificate)
        return builder.sign(self.key, self._digest).public_bytes(Encoding.DER)

    def respond_now(self, pair: Pair) -> bytes:
        """Say so for the next day, by the clock of whoever looks at clocks."""
        now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        return self.respond(pair, this_update=now - DAY, next_update=now + DAY)


class Pair:
    """A certificate with its key."""

    def __init__(
        self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, issuer: Authority
    ) -> None:
        self.certificate = certificate
        self.chain = b"".join(
            one.public_bytes(Encoding.PEM) for one in (certificate, issuer.certificate)
        )
        self.leaf = certificate.public_bytes(Encoding.PEM)
        self.key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


AUTHORITY = Authority()
PAIR = AUTHORITY.issue()
GOOD = AUTHORITY.respond(PAIR)


def serve(staple: bytes | None, now: int = NOW) -> tuple[ir.Secret, list[str]]:
    """Return the secret that a listener with this response is served with, and what is told."""
    data = {"tls.crt": PAIR.chain, "tls.key": PAIR.key}
    if staple is not None:
        data["tls.ocsp-staple"] = staple
    secret = msgspec.structs.replace(
        make("Secret default/cert", type="kubernetes.io/tls"), data=data
    )
    listener = {"protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "cert"}]}}
    objects = [gateway_class(), gateway(port=443, **listener), secret]
    done = translate(Snapshot.of(objects), Settings(now=now))
    (fleet,) = done.ir.fleets
    (found,) = fleet.secrets
    return found, [one.line() for one in done.problems]


def test_a_good_response_is_stapled_for_as_long_as_it_holds() -> None:
    secret, problems = serve(GOOD)
    assert secret.staple == GOOD
    assert secret.staple_until == int((START + 7 * DAY).timestamp())
    assert not problems
    assert serve(None)[0].staple == b""


@pytest.mark.parametrize(
    ("staple", "now", "said"),
    [
        (b"rubbish", NOW, "not the DER of an OCSP response"),
        (GOOD[:-1], NOW, "not the DER of an OCSP response"),
        (b"\0" * (MAX_STAPLE + 1), NOW, "larger than 16 KiB"),
        (GOOD, NOW + 86400 * 6, "the response expired at 2026-01-08"),
        (GOOD, NOW - 86400 - 1, "is not valid before 2026-01-01"),
        (AUTHORITY.respond(AUTHORITY.issue(8)), NOW, "not for this certificate"),
        (AUTHORITY.respond(PAIR, next_update=None), NOW, "has no nextUpdate"),
        (
            AUTHORITY.respond(PAIR, cert_status=ocsp.OCSPCertStatus.UNKNOWN),
            NOW,
            "does not know the certificate",
        ),
        (
            ocsp.OCSPResponseBuilder.build_unsuccessful(
                ocsp.OCSPResponseStatus.TRY_LATER
            ).public_bytes(Encoding.DER),
            NOW,
            "the responder answered TRY_LATER",
        ),
    ],
)
def test_what_is_no_use_is_told_and_not_stapled(staple: bytes, now: int, said: str) -> None:
    secret, problems = serve(staple, now)
    assert secret.certificate and secret.staple == b"" and secret.staple_until == 0
    told = [one for one in problems if "tls.ocsp-staple" in one]
    assert len(told) == 1
    assert said in told[0] and "served without it" in told[0]
    assert "spec.listeners[0].tls.certificateRefs[0]" in told[0]


def test_one_that_says_revoked_is_stapled_and_told() -> None:
    revoked = AUTHORITY.respond(
        PAIR, cert_status=ocsp.OCSPCertStatus.REVOKED, revocation_time=START
    )
    secret, problems = serve(revoked)
    assert secret.staple == revoked
    assert any("was revoked at 2026-01-01" in one for one in problems)


@pytest.mark.parametrize("algorithm", [hashes.SHA1(), hashes.SHA256()], ids=lambda one: one.name)
@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP384R1()),
        rsa.generate_private_key(65537, 2048),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["ecdsa", "rsa", "ed25519"],
)
def test_issuers_of_each_kind_are_told_apart(key: Key, algorithm: hashes.HashAlgorithm) -> None:
    authority, namesake = Authority(key), Authority()
    pair = authority.issue()
    assert isinstance(
        parse_staple(authority.respond(pair, algorithm=algorithm), pair.chain), Staple
    )
    other = namesake.respond(namesake.issue(), algorithm=algorithm)
    assert parse_staple(other, pair.chain) == "the response is not for this certificate"
    stranger = Authority(name="stranger")
    other = stranger.respond(stranger.issue(), algorithm=algorithm)
    assert parse_staple(other, pair.leaf) == "the response is not for this certificate"


def test_it_is_shown_to_nobody_in_full() -> None:
    secret, _ = serve(GOOD)
    assert "staple" not in repr(secret)
