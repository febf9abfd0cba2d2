"""Certificate authority: the self-signed certificate that signs all others of one controller.

In: a name, a time, a lifetime.
Out: `Pair`s: the authority's own and those that it signs. No I/O, no clock.
Must never: sign another authority, or for longer than its own lifetime.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from controller.certs.pair import Pair, make_key

__all__ = ["AUTHORITY_LIFE", "SKEW", "make_authority", "sign"]

AUTHORITY_LIFE = timedelta(days=5 * 365)
#: A certificate is valid this long before it is made: clocks of nodes differ.
SKEW = timedelta(hours=1)

_NAME_LIMIT = 64  # characters of a common name (RFC 5280, ub-common-name)


def make_authority(name: str, now: datetime, life: timedelta = AUTHORITY_LIFE) -> Pair:
    """Make an authority. Its name ends with its serial number, so that no two are taken for each other."""
    serial = x509.random_serial_number()
    tail = f" {serial:040x}"[:17]
    subject = _subject(name[: _NAME_LIMIT - len(tail)] + tail)
    key = make_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .serial_number(serial)
        .public_key(key.public_key())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


def sign(
    authority: Pair,
    name: str,
    alternatives: Sequence[x509.GeneralName],
    now: datetime,
    life: timedelta,
    *,
    server: bool,
    extensions: Sequence[x509.ExtensionType] = (),
) -> Pair:
    """Make a certificate for TLS clients, and for servers too when `server`; it ends with its authority at the latest.

    `extensions` are added as not critical.
    """
    key = make_key()
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if server:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    issuer = authority.certificate
    issuer_key = x509.SubjectKeyIdentifier.from_public_key(authority.key.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(_subject(name[:_NAME_LIMIT]))
        .issuer_name(issuer.subject)
        .serial_number(x509.random_serial_number())
        .public_key(key.public_key())
        .not_valid_before(now - SKEW)
        .not_valid_after(min(now + life, authority.expires))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName(list(alternatives)), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key),
            critical=False,
        )
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return Pair(builder.sign(authority.key, hashes.SHA256()), key)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
