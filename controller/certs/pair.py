"""Pair: a certificate with its private key, as PEM text, and checks of both.

In: PEM.
Out: `Pair`, certificates, checks (whether the key matches, the issuer, the renewal time). No I/O,
no clock.
Must never: show a key; `repr` contains only the subject of the certificate.
"""

from __future__ import annotations

from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

__all__ = [
    "Key",
    "Pair",
    "make_key",
    "read_bundle",
    "read_pair",
    "signed_by",
    "uris_of",
    "write_pem",
]

#: We make the first kind; the second may be brought along.
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Pair:
    """A certificate and the key that fits it. `certificate_pem` and `key_pem` are what a Secret holds."""

    def __init__(self, certificate: x509.Certificate, key: Key) -> None:
        self.certificate = certificate
        self.certificate_pem = write_pem(certificate)
        self.key = key
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.key_pem = plain.decode()

    def __repr__(self) -> str:
        return f"Pair({self.certificate.subject.rfc4514_string()!r})"

    @property
    def expires(self) -> datetime:
        """The end of its life, with time zone."""
        return self.certificate.not_valid_after_utc

    def is_due(self, now: datetime, fraction: float) -> bool:
        """Tell whether `fraction` of its life is over."""
        start = self.certificate.not_valid_before_utc
        return now >= start + (self.expires - start) * fraction


def make_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key: ECDSA P-256, which every TLS stack verifies, and quickly."""
    return ec.generate_private_key(ec.SECP256R1())


def read_pair(certificate_pem: str, key_pem: str) -> Pair:
    """Read a pair; raises ValueError (without the text) when it is none or the key does not fit."""
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem.encode())
        key = load_pem_private_key(key_pem.encode(), None)
        public = certificate.public_key()
    except UnsupportedAlgorithm:
        raise ValueError("the key of the certificate is neither ECDSA nor RSA") from None
    except (ValueError, TypeError):
        raise ValueError("not a certificate and its private key in PEM") from None
    if not isinstance(key, Key):
        raise ValueError("the private key is neither ECDSA nor RSA")
    if _public(key.public_key()) != _public(public):
        raise ValueError("the private key does not belong to the certificate")
    return Pair(certificate, key)


def read_bundle(pem: str) -> tuple[x509.Certificate, ...]:
    """Read certificates one after the other; raises ValueError when there is none or one is broken."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem.encode()))
    except ValueError:
        raise ValueError("not a list of certificates in PEM") from None


def write_pem(certificate: x509.Certificate) -> str:
    """Return a certificate as PEM."""
    return certificate.public_bytes(Encoding.PEM).decode()


def uris_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the URIs among the alternative names."""
    names = _alternatives(certificate)
    return tuple(names.get_values_for_type(x509.UniformResourceIdentifier)) if names else ()


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names among the alternative names."""
    names = _alternatives(certificate)
    return tuple(names.get_values_for_type(x509.DNSName)) if names else ()


def signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Tell whether an authority signed a certificate; names, key and signature must agree."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _alternatives(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return None


def _public(key: object) -> bytes:
    if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise ValueError("the type of the public key is unknown")
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
