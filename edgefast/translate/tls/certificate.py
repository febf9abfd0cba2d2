"""Certificate: parses PEM chains, keys and CA bundles, so that a broken pair is refused before a handshake.

In: PEM bytes of chains, keys and CA bundles. Out: their relevant facts and the same in plain PEM,
or an error text. The proxy serves the parsed form, written again: two parsers never have to agree
on comments, indents or half a block. The TLS library verifies peers; this module only checks that
it loads the files, by the rules of OpenSSL's security level 2.
Must never: print or return key material, or read a clock.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from edgefast.translate.tls.pem import read_certificates

#: Largest PEM text taken: a Secret or ConfigMap holds at most 1 MiB (Kubernetes API).
MAX_PEM = 1024 * 1024
#: Seconds before its end from which a certificate is reported; or the last quarter of its lifetime.
SOON = 14 * 86_400
#: Names of a certificate that a message lists.
_NAMED = 3
# OpenSSL's security level 2 (112 bits) refuses less, in every certificate of the chain.
_MIN_RSA_BITS = 2048
_MIN_CURVE_BITS = 224
_WEAK_DIGESTS = ("md5", "sha1")


class Pair(msgspec.Struct, frozen=True):
    """A certificate chain with its key."""

    algorithm: str  # "RSA", "ECDSA" or "Ed25519": a server holds one pair of each
    not_before: int  # seconds since 1970
    not_after: int
    since: str  # not_before in words
    until: str  # not_after in words
    chain: bytes  # plain PEM
    key: bytes  # plain PEM, PKCS #8
    names: tuple[str, ...] = ()  # DNS names, lower case

    def __repr__(self) -> str:
        return f"Pair({self.algorithm}, until {self.until})"

    def is_expiring(self, now: int) -> bool:
        """Tell whether it is valid at `now`, and not for long."""
        soon = min(SOON, (self.not_after - self.not_before) // 4)
        return self.not_before <= now <= self.not_after < now + soon

    def check_time(self, now: int) -> str:
        """Return why clients refuse it at `now` (seconds since 1970; 0 does not look), or will soon, "" if not."""
        if now and self.not_after < now:
            return f"the certificate expired at {self.until}; peers refuse it"
        if now and now < self.not_before:
            return f"the certificate is not valid before {self.since}; peers refuse it"
        if now and self.is_expiring(now):
            return f"the certificate expires at {self.until}; renew it"
        return ""

    def check_name(self, hostname: str) -> str:
        """Return why clients refuse it for a listener's hostname ("": any host), "" if not.

        A wildcard hostname covers every name under its domain: one name of the certificate there is enough.
        """
        first, _, parent = hostname.partition(".")
        if not hostname or hostname in self.names or f"*.{parent}" in self.names:
            return ""
        if first == "*" and any(one.endswith(f".{parent}") for one in self.names):
            return ""
        named = ", ".join(self.names[:_NAMED]) or "no host"
        more = f" and {len(self.names) - _NAMED} more" if len(self.names) > _NAMED else ""
        return f"the certificate is for {named}{more}, not for {hostname}; clients refuse it"


def parse_pair(chain: bytes, key: bytes) -> Pair | str:
    """Return the pair, or what is wrong with it; the leaf comes first in the chain."""
    if len(chain) > MAX_PEM or len(key) > MAX_PEM:
        return "tls.crt or tls.key is larger than 1 MiB"
    certificates = read_certificates(chain)
    if isinstance(certificates, str):
        return f"tls.crt is not a PEM certificate chain: {certificates}"
    try:
        leaf = certificates[0]
        weak = next(filter(None, (_weakness(one, one is leaf) for one in certificates)), "")
        public = leaf.public_key()
        until = leaf.not_valid_after_utc
        since = leaf.not_valid_before_utc
        names = _names_of(leaf)
    # The library has errors of several families for foreign bytes, and one Secret must not end a translation.
    except Exception:
        return "tls.crt has a certificate with an unreadable field or extension"
    try:
        private = load_pem_private_key(key, password=None)
    except Exception:
        return "tls.key is not an unencrypted PEM private key"
    if isinstance(public, rsa.RSAPublicKey):
        algorithm = "RSA"
    elif isinstance(public, ec.EllipticCurvePublicKey):
        algorithm = "ECDSA"
    elif isinstance(public, ed25519.Ed25519PublicKey):
        algorithm = "Ed25519"
    else:
        return "the key is neither RSA nor ECDSA nor Ed25519"
    if weak:
        return weak
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*form) != public.public_bytes(*form):
        return "tls.key does not belong to tls.crt"
    return Pair(
        algorithm=algorithm,
        not_before=int(since.timestamp()),
        not_after=int(until.timestamp()),
        since=since.isoformat(),
        until=until.isoformat(),
        chain=_write(certificates),
        key=private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        names=names,
    )


def _names_of(leaf: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names of a certificate, without the common name (RFC 9110 4.3.4)."""
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(one.lower() for one in found.get_values_for_type(x509.DNSName))


def check_bundle(bundle: bytes) -> str:
    """Return what is wrong with a PEM bundle of certificate authorities, "" when it loads."""
    read = parse_bundle(bundle)
    return read if isinstance(read, str) else ""


def parse_bundle(bundle: bytes) -> bytes | str:
    """Return the certificates of a PEM bundle in plain PEM, or what is wrong with it."""
    if len(bundle) > MAX_PEM:
        return "ca.crt is larger than 1 MiB"
    authorities = read_certificates(bundle)
    if isinstance(authorities, str):
        return f"ca.crt is not a PEM bundle of certificates: {authorities}"
    return _write(authorities)


def check_revocation_lists(lists: bytes) -> str:
    """Return what is wrong with revocation lists in PEM, "" if nothing is."""
    if len(lists) > MAX_PEM:
        return "it is larger than 1 MiB"
    parts = lists.split(b"-----BEGIN X509 CRL-----")[1:]
    if not parts:
        return "it has no PEM revocation list"
    for number, part in enumerate(parts):
        try:
            x509.load_pem_x509_crl(b"-----BEGIN X509 CRL-----" + part)
        except ValueError:
            return f"revocation list {number + 1} is not valid"
    return ""


def _write(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def _weakness(certificate: x509.Certificate, is_leaf: bool) -> str:
    """Return why OpenSSL would not take it into a chain, or ""."""
    public = certificate.public_key()
    owner = "" if is_leaf else f" of {certificate.subject.rfc4514_string() or 'an issuer'}"
    if isinstance(public, rsa.RSAPublicKey) and public.key_size < _MIN_RSA_BITS:
        return (
            f"the RSA key{owner} has {public.key_size} bits (at least {_MIN_RSA_BITS} are required)"
        )
    if isinstance(public, ec.EllipticCurvePublicKey) and public.key_size < _MIN_CURVE_BITS:
        bits = f"{public.key_size} bits (at least {_MIN_CURVE_BITS} are required)"
        return f"the ECDSA key{owner} has {bits}"
    digest = certificate.signature_hash_algorithm
    signed_by_itself = certificate.issuer == certificate.subject
    if digest is not None and digest.name in _WEAK_DIGESTS and not signed_by_itself:
        return f"the certificate{owner} is signed with {digest.name.upper()}, which is not secure"
    return ""
