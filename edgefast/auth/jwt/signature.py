"""Signatures: the supported algorithms (RFC 7518 3.1, RFC 8037, RFC 9864) and their verification.

In: the name of an algorithm that a key allows (edgefast/auth/jwt/key_set.py), bytes.
Out: whether the signature is valid.
Must never: be called with the algorithm of a token before it is known to be one of the key's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from edgefast.auth.jwt.key_set import Key

__all__ = ["ALGORITHMS", "SLOW", "Check", "is_signed"]

#: Those that take most of what a turn of the loop may: a thread verifies them.
SLOW = frozenset({"ES384", "ES512"})

_SHA256, _SHA384, _SHA512 = hashes.SHA256(), hashes.SHA384(), hashes.SHA512()
_RSA: Mapping[str, tuple[PKCS1v15 | PSS, hashes.HashAlgorithm]] = {
    "RS256": (PKCS1v15(), _SHA256),
    "RS384": (PKCS1v15(), _SHA384),
    "RS512": (PKCS1v15(), _SHA512),
    "PS256": (PSS(MGF1(_SHA256), 32), _SHA256),
    "PS384": (PSS(MGF1(_SHA384), 48), _SHA384),
    "PS512": (PSS(MGF1(_SHA512), 64), _SHA512),
}
_EC: Mapping[str, tuple[ec.ECDSA, int]] = {  # and octets of each half of a signature
    "ES256": (ec.ECDSA(_SHA256), 32),
    "ES384": (ec.ECDSA(_SHA384), 48),
    "ES512": (ec.ECDSA(_SHA512), 66),
}
#: Of an algorithm, a key that is for it, a signature and what is signed.
Check = Callable[[str, Key, bytes, bytes], bool]
ALGORITHMS = frozenset({*_RSA, *_EC, "EdDSA", "Ed25519"})


def is_signed(alg: str, key: Key, signature: bytes, signed: bytes) -> bool:
    """Tell whether the owner of `key` signed; `alg` is one that it is for."""
    public = key.public
    try:
        if isinstance(public, rsa.RSAPublicKey):
            padding, digest = _RSA[alg]
            if len(signature) != (public.key_size + 7) // 8:
                return False
            public.verify(signature, signed, padding, digest)
        elif isinstance(public, ec.EllipticCurvePublicKey):
            algorithm, size = _EC[alg]
            if len(signature) != 2 * size:
                return False
            r = int.from_bytes(signature[:size], "big")
            s = int.from_bytes(signature[size:], "big")
            public.verify(encode_dss_signature(r, s), signed, algorithm)
        else:
            assert isinstance(public, ed25519.Ed25519PublicKey)
            public.verify(signature, signed)
    except InvalidSignature:
        return False
    return True
