"""Staple: OCSP responses in TLS Secrets (key `tls.ocsp-staple`, DER, as Istio and kgateway have it).

In: the bytes of a response, the parsed certificate chain. Out: what a server staples and how long,
or an error text. With an error the certificate is served without a staple. The client verifies the
signature of the response. This module checks its form, its certificate and its validity period. A
"revoked" response is stapled like any other, and reported.
Must never: read a clock, or refuse a certificate for its staple.
"""

from __future__ import annotations

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import Hash, HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import ocsp

#: Largest response taken. One with a certificate of its signer has 2 to 3 KiB, and every full handshake carries it.
MAX_STAPLE = 16 * 1024
#: Responses for single certificates that are looked at.
_MOST_SINGLE = 64


class Staple(msgspec.Struct, frozen=True):
    """An OCSP response for a certificate."""

    response: bytes  # DER
    not_before: int  # seconds since 1970: thisUpdate
    not_after: int  # nextUpdate
    since: str  # not_before in words
    until: str  # not_after in words
    revoked: str = ""  # since when, if it says so

    def check_time(self, now: int) -> str:
        """Return why it is not stapled at `now` (seconds since 1970; 0 does not look), "" if it is."""
        if now and self.not_after <= now:
            return f"the response expired at {self.until}"
        if now and now < self.not_before:
            return f"the response is not valid before {self.since}"
        return ""


def parse_staple(response: bytes, chain: bytes) -> Staple | str:
    """Return the staple of the first certificate of a PEM chain, or what is wrong with it."""
    if len(response) > MAX_STAPLE:
        return f"the response is larger than {MAX_STAPLE // 1024} KiB"
    try:
        read = ocsp.load_der_ocsp_response(response)
        if read.response_status is not ocsp.OCSPResponseStatus.SUCCESSFUL:
            return f"the responder answered {read.response_status.name}"
        certificates = x509.load_pem_x509_certificates(chain)
        for at, single in enumerate(read.responses):
            if at >= _MOST_SINGLE:
                break
            if _is_of(single, certificates):
                return _read(response, single)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "it is not the DER of an OCSP response"
    return "the response is not for this certificate"


def _is_of(single: ocsp.OCSPSingleResponse, certificates: list[x509.Certificate]) -> bool:
    """Compare serial number and issuer (RFC 6960 4.1.1); the issuer's key where the chain has it."""
    leaf = certificates[0]
    if single.serial_number != leaf.serial_number:
        return False
    if _digest(single.hash_algorithm, leaf.issuer.public_bytes()) != single.issuer_name_hash:
        return False
    issuer = next((one for one in certificates[1:] if one.subject == leaf.issuer), None)
    return issuer is None or _digest(single.hash_algorithm, _key(issuer)) == single.issuer_key_hash


def _key(certificate: x509.Certificate) -> bytes:
    """Return the bits of subjectPublicKey, without what says of which kind they are; b"" for a kind that no issuer has."""
    public = certificate.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        return public.public_bytes(Encoding.DER, PublicFormat.PKCS1)
    if isinstance(public, ec.EllipticCurvePublicKey):
        return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    if isinstance(public, ed25519.Ed25519PublicKey):
        return public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return b""


def _digest(algorithm: HashAlgorithm, data: bytes) -> bytes:
    made = Hash(algorithm)
    made.update(data)
    return made.finalize()


def _read(response: bytes, single: ocsp.OCSPSingleResponse) -> Staple | str:
    if single.certificate_status is ocsp.OCSPCertStatus.UNKNOWN:
        return "the responder does not know the certificate"
    since, until = single.this_update_utc, single.next_update_utc
    if until is None:
        return "the response has no nextUpdate, so its lifetime is unknown"
    revoked = single.revocation_time_utc
    return Staple(
        response=response,
        not_before=int(since.timestamp()),
        not_after=int(until.timestamp()),
        since=since.isoformat(),
        until=until.isoformat(),
        revoked=revoked.isoformat() if revoked is not None else "",
    )
