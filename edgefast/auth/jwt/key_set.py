"""KeySet: a JSON Web Key Set (RFC 7517, 7518, 8037) of verification keys in one canonical encoding.

In: the text of a set, from a ConfigMap or an issuer; bytes from `write`.
Out: a KeySet of public keys, each with its allowed algorithms, and texts about ignored keys. Equal
keys have equal bytes, whatever else the set contained.
Must never: accept a secret as a verification key (the verifier could sign, too), or output anything
of a key but its position, kid, type and size.
"""

from __future__ import annotations

import binascii
import json
from typing import Any, NamedTuple

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
)

from edgefast.auth.jwt.strict_json import JsonError, parse_json

__all__ = [
    "KEYS_LIMIT",
    "SET_LIMIT",
    "Key",
    "KeySet",
    "KeySetError",
    "ParsedKeys",
    "PublicKey",
    "decode_base64url",
    "parse_key_set",
    "read",
    "read_kids",
    "show_kid",
    "write",
]

#: Bytes of a set's text, and keys in it: large issuers publish about ten in 20 KiB.
SET_LIMIT = 1024 * 1024
KEYS_LIMIT = 64
#: Bits of an RSA key: fewer are refused by RFC 7518 3.3, more cost a request too much.
RSA_BITS = range(2048, 8192 + 1)
#: Bits of its exponent: a large one would make verifying as dear as signing.
EXPONENT_BITS = 32
#: Characters of a kid: it names a key, and is held beside it.
KID_LIMIT = 256
_SHOWN = 40  # characters of a kid in a message
_CONTAINERS = 32 * KEYS_LIMIT
_DEPTH = 32  # of JSON; a set has three, and members that nobody knows

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ED25519 = ("EdDSA", "Ed25519")  # RFC 8037, RFC 9864
_CURVES: dict[
    str, tuple[type[ec.EllipticCurve], int, str]
] = {  # octets of a coordinate; RFC 7518 6.2.1, 3.4
    "P-256": (ec.SECP256R1, 32, "ES256"),
    "P-384": (ec.SECP384R1, 48, "ES384"),
    "P-521": (ec.SECP521R1, 66, "ES512"),
}
_CURVE_ALGORITHMS = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
#: What only a private or a secret key has (RFC 7518 6.2.2, 6.3.2, 6.4.1; RFC 8037 2).
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth")

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


class KeySetError(ValueError):
    """The set cannot be used at all; the text says why."""


class Key(NamedTuple):
    """One public key. Keys are equal when their names, algorithms and material are."""

    kid: str  # "": it has none
    algorithms: tuple[str, ...]  # that a token's `alg` may be one of
    spki: bytes  # DER of its SubjectPublicKeyInfo
    public: PublicKey

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self[:3] == other[:3]

    def __hash__(self) -> int:
        return hash(self[:3])

    def __repr__(self) -> str:
        return f"Key({show_kid(self.kid)}, {'/'.join(self.algorithms)})"


class KeySet(NamedTuple):
    """Keys in the order of the set."""

    keys: tuple[Key, ...]


class ParsedKeys(NamedTuple):
    """What a text says."""

    keys: KeySet  # at least one
    skipped: tuple[str, ...]  # why keys are not used, but for those that are not for signatures


class _Unusable(Exception):
    """Of one key; the text says why."""


class _NotAsked(Exception):
    """A key that is not for signatures."""


def parse_key_set(text: bytes) -> ParsedKeys:
    """Read the text of a set. Raises KeySetError when it is none, too large, or has no key that can be used."""
    members = _read_members(text)
    keys: dict[Key, None] = {}  # one that is there twice is there once
    skipped: list[str] = []
    for position, member in enumerate(members):
        try:
            keys[_parse_key(member)] = None
        except _NotAsked:
            continue
        except _Unusable as error:
            skipped.append(f"keys[{position}]{_name(member)}: {error}")
    if not keys:
        reported = "; ".join(skipped) or "it has no key for signatures"
        raise KeySetError(f"the key set has no usable key: {reported}")
    return ParsedKeys(KeySet(tuple(keys)), tuple(skipped))


# --- our own spelling -----------------------------------------------------------------------------------------------


class _Written(msgspec.Struct, frozen=True, array_like=True):
    kid: str
    algorithms: tuple[str, ...]
    spki: bytes


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODER: msgspec.msgpack.Decoder[tuple[_Written, ...]] = msgspec.msgpack.Decoder(
    tuple[_Written, ...]
)


def write(keys: KeySet) -> bytes:
    """Return the set as bytes that `read` takes."""
    return _ENCODE([_Written(one.kid, one.algorithms, one.spki) for one in keys.keys])


def read(data: bytes) -> KeySet:
    """Read back what `write` made. Raises KeySetError for anything else."""
    if len(data) > SET_LIMIT:
        raise KeySetError("the key set is too large")
    try:
        written = _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise KeySetError(f"invalid key set: {error}") from None
    if len(written) > KEYS_LIMIT:
        raise KeySetError(f"the key set has {len(written)} keys (at most {KEYS_LIMIT})")
    return KeySet(tuple(map(_read_key, written)))


def read_kids(data: bytes) -> frozenset[str]:
    """Return the names of the keys in what `write` made; none for anything else."""
    try:
        return frozenset(one.kid for one in _DECODER.decode(data))
    except msgspec.MsgspecError:
        return frozenset()


def _read_key(one: _Written) -> Key:
    try:
        public = load_der_public_key(one.spki)
    except (ValueError, UnsupportedAlgorithm):
        raise KeySetError(f"key {show_kid(one.kid)} cannot be read") from None
    fitting: tuple[str, ...] = ()
    if isinstance(public, rsa.RSAPublicKey) and public.key_size in RSA_BITS:
        fitting = _RSA
    elif isinstance(public, ec.EllipticCurvePublicKey):
        fitting = (_CURVE_ALGORITHMS.get(public.curve.name, ""),)
    elif isinstance(public, ed25519.Ed25519PublicKey):
        fitting = _ED25519
    if not one.algorithms or not set(one.algorithms) <= set(fitting) - {""}:
        raise KeySetError(f"key {show_kid(one.kid)} does not support its algorithms")
    assert isinstance(public, PublicKey)
    return Key(one.kid, one.algorithms, one.spki, public)


# --- RFC 7517 -------------------------------------------------------------------------------------------------------


def _read_members(text: bytes) -> list[Any]:
    if len(text) > SET_LIMIT:
        raise KeySetError(f"the key set has {len(text)} bytes (at most {SET_LIMIT})")
    if text.lstrip().startswith(b"-----BEGIN"):
        raise KeySetError("the text is PEM, not a JSON Web Key Set (RFC 7517)")
    try:
        found = parse_json(text, _DEPTH, _CONTAINERS)
    except JsonError as error:
        raise KeySetError(f"the key set is not JSON: {error}") from None
    members = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(members, list):
        hint = (
            "; the text is a single key: put it into such a list"
            if isinstance(found, dict) and "kty" in found
            else ""
        )
        raise KeySetError(f'a key set must be an object with a list "keys"{hint}')
    if len(members) > KEYS_LIMIT:
        raise KeySetError(f"the key set has {len(members)} keys (at most {KEYS_LIMIT})")
    return members


def _parse_key(member: Any) -> Key:
    if not isinstance(member, dict):
        raise _Unusable("not an object")
    use, operations = member.get("use"), member.get("key_ops")
    if isinstance(use, str) and use != "sig":
        raise _NotAsked
    if isinstance(operations, list) and "verify" not in operations:
        raise _NotAsked
    if use is not None and not isinstance(use, str):
        raise _Unusable("use is not a string")
    if operations is not None and not isinstance(operations, list):
        raise _Unusable("key_ops is not a list")
    kid = member.get("kid", "")
    if not isinstance(kid, str) or len(kid) > KID_LIMIT:
        raise _Unusable(f"kid is not a string of at most {KID_LIMIT} characters")
    kty = member.get("kty")
    if kty == "oct":
        raise _Unusable(
            "a shared secret (oct) is not used because it can also sign tokens; let the issuer "
            "sign with RSA, EC or Ed25519"
        )
    if any(name in member for name in _PRIVATE):
        raise _Unusable(
            "the set contains a private key, which can sign tokens; create a new key pair and "
            "publish only its public key"
        )
    if kty == "RSA":
        public, fitting = _parse_rsa(member)
    elif kty == "EC":
        public, fitting = _parse_ec(member)
    elif kty == "OKP":
        public, fitting = _parse_okp(member)
    else:
        raise _Unusable("its kty is not RSA, EC or OKP")
    spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return Key(kid, _algorithms(member, fitting), spki, public)


def _algorithms(member: dict[str, Any], fitting: tuple[str, ...]) -> tuple[str, ...]:
    alg = member.get("alg")
    if alg is None:
        return fitting
    if alg not in fitting:
        raise _Unusable(f"its alg does not match its type (allowed: {', '.join(fitting)})")
    return _ED25519 if alg in _ED25519 else (alg,)  # two names for one


def _parse_rsa(member: dict[str, Any]) -> tuple[PublicKey, tuple[str, ...]]:
    modulus = int.from_bytes(_octets(member, "n"), "big")
    exponent = int.from_bytes(_octets(member, "e"), "big")
    bits = modulus.bit_length()
    if bits not in RSA_BITS:
        raise _Unusable(f"an RSA key of {bits} bits; it must have {RSA_BITS[0]} to {RSA_BITS[-1]}")
    if exponent.bit_length() > EXPONENT_BITS:
        raise _Unusable(f"its exponent has more than {EXPONENT_BITS} bits")
    try:
        return rsa.RSAPublicNumbers(exponent, modulus).public_key(), _RSA
    except ValueError:
        raise _Unusable("n and e are not a valid RSA key") from None


def _parse_ec(member: dict[str, Any]) -> tuple[PublicKey, tuple[str, ...]]:
    name = member.get("crv")
    if not isinstance(name, str) or name not in _CURVES:
        raise _Unusable("its crv is not P-256, P-384 or P-521")
    curve, size, alg = _CURVES[name]
    x, y = _octets(member, "x"), _octets(member, "y")
    if len(x) != size or len(y) != size:
        raise _Unusable(f"x and y of {name} must have {size} octets each")
    try:
        point = int.from_bytes(x, "big"), int.from_bytes(y, "big")
        return ec.EllipticCurvePublicNumbers(*point, curve()).public_key(), (alg,)
    except ValueError:
        raise _Unusable(f"x and y are not a point of {name}") from None


def _parse_okp(member: dict[str, Any]) -> tuple[PublicKey, tuple[str, ...]]:
    if member.get("crv") in ("X25519", "X448"):  # which agree on keys, and sign nothing
        raise _NotAsked
    if member.get("crv") != "Ed25519":
        raise _Unusable("its crv is not Ed25519")
    x = _octets(member, "x")
    try:
        return ed25519.Ed25519PublicKey.from_public_bytes(x), _ED25519
    except ValueError:
        raise _Unusable("x of Ed25519 must have 32 octets") from None


def _octets(member: dict[str, Any], name: str) -> bytes:
    value = member.get(name)
    if isinstance(value, str) and value.isascii():
        found = decode_base64url(value.encode())
        if found:
            return found
    raise _Unusable(f"its {name} is missing, or not base64url without padding")


def decode_base64url(text: bytes) -> bytes | None:
    """Decode base64url as RFC 7515 2 has it: no padding, nothing else in it, no bits that say nothing. None: it is not that."""
    if len(text) % 4 == 1:
        return None
    try:
        found = binascii.a2b_base64(text.translate(_FROM_URL) + b"=" * (-len(text) % 4))
    except binascii.Error:
        return None
    return (
        found
        if binascii.b2a_base64(found, newline=False).rstrip(b"=").translate(_TO_URL) == text
        else None
    )


_FROM_URL = bytes.maketrans(b"-_+/", b"+/!!")
_TO_URL = bytes.maketrans(b"+/", b"-_")


def show_kid(kid: str) -> str:
    """Return a kid as it may stand in a message."""
    short = kid if len(kid) <= _SHOWN else kid[: _SHOWN - 3] + "..."
    return json.dumps(short)


def _name(member: Any) -> str:
    kid = member.get("kid") if isinstance(member, dict) else None
    return f" (kid {show_kid(kid)})" if isinstance(kid, str) and kid else ""
