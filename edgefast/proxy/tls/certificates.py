"""Certificate facts: names, key type, expiry.

In: PEM of `ir.Secret`.
Out: public facts; PemError for unreadable PEM. Only the TLS library decides whether it accepts a
certificate (`edgefast.core.TlsContext`).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CertificateFacts", "PemError", "read_facts"]


class PemError(Exception):
    """A certificate that cannot be read."""


class CertificateFacts(NamedTuple):
    """What is public about a certificate; `expires` in Unix seconds."""

    kind: str  # "rsa", "ec", or another key algorithm's name
    names: tuple[str, ...]  # DNS names, lower case
    expires: float
    issuer: str


def read_facts(certificate: bytes) -> CertificateFacts:
    """Read the first certificate of a PEM chain; raises PemError."""
    # Imported here: a worker without several certificates per listener never pays for it (8 MiB).
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        leaf = x509.load_pem_x509_certificate(certificate)
        key = leaf.public_key()
        names = _dns_names(leaf)
    except Exception:  # the library has errors of several families for foreign bytes
        raise PemError("certificate cannot be read") from None
    if isinstance(key, rsa.RSAPublicKey):
        kind = "rsa"
    elif isinstance(key, ec.EllipticCurvePublicKey):
        kind = "ec"
    else:
        kind = type(key).__name__
    expires = leaf.not_valid_after_utc.timestamp()
    return CertificateFacts(kind, names, expires, leaf.issuer.rfc4514_string())


def _dns_names(leaf: object) -> tuple[str, ...]:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    assert isinstance(leaf, x509.Certificate)
    try:
        san = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return tuple(name.lower() for name in san.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        common = leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return tuple(str(name.value).lower() for name in common)
