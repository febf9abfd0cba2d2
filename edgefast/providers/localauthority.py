"""Local authority: a certificate for localhost and the authority that signs it, made for one process.

In: a name for the authority, and the time.
Out: PEM: the authority's certificate, the server's chain and the server's key. The key of the authority
is dropped after the signature, so it cannot sign anything else.
Must never: write a file, or show a key in `repr`.
"""

from __future__ import annotations

import datetime
import ipaddress

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["LocalCertificate", "make_local_certificate"]

_LIFE = datetime.timedelta(days=7)
#: Clocks of a machine and its containers differ.
_SKEW = datetime.timedelta(hours=1)
_NAMES = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
)


class LocalCertificate(msgspec.Struct, frozen=True):
    """PEM texts; `authority` is what clients trust."""

    authority: bytes
    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Leave out the key."""
        return "LocalCertificate()"


def make_local_certificate(name: str, now: datetime.datetime) -> LocalCertificate:
    """Make an authority with this name and a certificate for localhost; ECDSA P-256, valid for a week."""
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    identifier = x509.SubjectKeyIdentifier.from_public_key(issuer_key.public_key())
    authority = (
        _builder(issuer, issuer, issuer_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    certificate = (
        _builder(subject, issuer, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256())
    )
    return LocalCertificate(
        authority.public_bytes(serialization.Encoding.PEM),
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFE)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
