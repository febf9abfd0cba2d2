"""Certificates and keys: PEM bytes into OpenSSL without a file on any disk, and what they say.

In: PEM of `ir.Secret`. Out: loaded contexts, DNS names, key kind, expiry; PemError with a text that
names the mistake and never quotes the key. A key reaches OpenSSL through an anonymous memory file
that is gone when the function returns. What fails for want of descriptors or memory is an OSError
(reserve.is_shortage), not a verdict. Must never prompt for a passphrase: an encrypted key is an
error.
"""

from __future__ import annotations

import os
import ssl
from typing import NamedTuple

from edgefast.proxy.process.reserve import RESERVE, is_shortage

__all__ = ["CertificateFacts", "PemError", "load_ca", "load_pair", "read_facts"]


class PemError(Exception):
    """A certificate, key or CA bundle that OpenSSL will not take."""


class CertificateFacts(NamedTuple):
    """What is public about a certificate; `expires` in Unix seconds."""

    kind: str  # "rsa", "ec", or another key algorithm's name
    names: tuple[str, ...]  # DNS names, lower case
    expires: float
    issuer: str


def load_pair(context: ssl.SSLContext, certificate: bytes, private_key: bytes) -> None:
    """Add a certificate chain and its key to `context`; raises PemError, OSError for a shortage."""
    if b"-----BEGIN" not in certificate:
        raise PemError("certificate is not PEM")
    if b"-----BEGIN" not in private_key:
        raise PemError("private key is not PEM")
    pem = certificate.rstrip() + b"\n" + private_key.rstrip() + b"\n"
    try:
        RESERVE.spare(lambda: _load_file(context, pem))
    except ssl.SSLError as error:
        raise PemError(_reason(error)) from None
    except (OSError, ValueError) as error:
        if is_shortage(error):
            raise
        raise PemError(f"cannot be loaded: {error}") from None


def _load_file(context: ssl.SSLContext, pem: bytes) -> None:
    """Hand `pem` over by a file, the only way that ssl has: one in memory; two descriptors."""
    fd = os.memfd_create("edgefast-key", os.MFD_CLOEXEC)
    try:
        os.write(fd, pem)
        context.load_cert_chain(f"/proc/self/fd/{fd}", password=_no_passphrase)
    finally:
        os.close(fd)


def load_ca(context: ssl.SSLContext, bundle: bytes) -> None:
    """Trust the CA certificates of a PEM bundle in `context`; raises PemError."""
    try:
        context.load_verify_locations(cadata=bundle.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise PemError("CA bundle is not a list of PEM certificates") from None


def read_facts(certificate: bytes) -> CertificateFacts:
    """Read the first certificate of a PEM chain; raises PemError."""
    # Imported here: a worker without several certificates per listener never pays for it (8 MiB).
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        leaf = x509.load_pem_x509_certificate(certificate)
        key = leaf.public_key()
        names = _dns_names(leaf)
    except ValueError:
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


def _no_passphrase() -> str:
    raise ValueError("private key is encrypted; only unencrypted keys can be used")


def _reason(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return "private key does not belong to the certificate"
    words = reason.lower().replace("_", " ") or "malformed"
    return f"certificate or private key is not usable ({words})"
