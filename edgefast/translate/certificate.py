"""Certificates: PEM text parsed for real, so that a broken pair is refused here and not at a handshake.

In: PEM bytes of chains, keys and CA bundles. Out: what the rest needs to know of them, or what is
wrong in words. Verification of a peer is the TLS library's; this only asks "will it load".
Must never: print or return key material, or ask what time it is.
"""

from __future__ import annotations

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

#: Largest PEM text taken: a Secret or ConfigMap holds at most 1 MiB (Kubernetes API).
MAX_PEM = 1024 * 1024
_MIN_RSA_BITS = 2048  # OpenSSL security level 2 refuses less


class Pair(msgspec.Struct, frozen=True):
    """A certificate chain with its key."""

    algorithm: str  # "RSA", "ECDSA" or "Ed25519": a server holds one pair of each
    not_before: int  # seconds since 1970
    not_after: int
    since: str  # not_before in words
    until: str  # not_after in words

    def check_time(self, now: int) -> str:
        """Return why clients refuse it at `now` (seconds since 1970; 0 does not look), "" if not."""
        if now and self.not_after < now:
            return f"the certificate expired at {self.until}"
        if now and now < self.not_before:
            return f"the certificate is not valid before {self.since}"
        return ""


def parse_pair(chain: bytes, key: bytes) -> Pair | str:
    """Return the pair, or what is wrong with it; the leaf comes first in the chain."""
    if len(chain) > MAX_PEM or len(key) > MAX_PEM:
        return "tls.crt or tls.key is larger than 1 MiB"
    try:
        leaf = x509.load_pem_x509_certificates(chain)[0]
        public = leaf.public_key()
        until = leaf.not_valid_after_utc
        since = leaf.not_valid_before_utc
    except (ValueError, UnsupportedAlgorithm):
        return "tls.crt is not a PEM certificate chain"
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls.key is not an unencrypted PEM private key"
    if isinstance(public, rsa.RSAPublicKey):
        algorithm = "RSA"
        if public.key_size < _MIN_RSA_BITS:
            return f"the RSA key has {public.key_size} bits, at least {_MIN_RSA_BITS} are needed"
    elif isinstance(public, ec.EllipticCurvePublicKey):
        algorithm = "ECDSA"
    elif isinstance(public, ed25519.Ed25519PublicKey):
        algorithm = "Ed25519"
    else:
        return "the key is neither RSA nor ECDSA nor Ed25519"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*form) != public.public_bytes(*form):
        return "tls.key does not belong to tls.crt"
    return Pair(
        algorithm=algorithm,
        not_before=int(since.timestamp()),
        not_after=int(until.timestamp()),
        since=since.isoformat(),
        until=until.isoformat(),
    )


def check_bundle(bundle: bytes) -> str:
    """Return what is wrong with a PEM bundle of certificate authorities, "" when it loads."""
    if len(bundle) > MAX_PEM:
        return "ca.crt is larger than 1 MiB"
    try:
        authorities = x509.load_pem_x509_certificates(bundle)
        for authority in authorities:
            authority.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "ca.crt is not a PEM bundle of certificates"
    return ""
