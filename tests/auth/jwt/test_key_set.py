"""Key sets: what is taken, passed over and refused, in which words, and that bytes come back as the keys they were."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from auth.jwt.issuer import jwk, key_set
from edgefast.auth.jwt import key_set as key_set_module
from edgefast.auth.jwt.key_set import KEYS_LIMIT, SET_LIMIT, KeySetError, parse_key_set, read, write

pytestmark = pytest.mark.pure

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


def text(*keys: Any, **more: Any) -> bytes:
    return json.dumps({"keys": keys, **more}).encode()


@pytest.mark.parametrize(
    ("alg", "fitting"),
    [
        ("RS256", _RSA),
        ("ES256", ("ES256",)),
        ("ES384", ("ES384",)),
        ("ES512", ("ES512",)),
        ("EdDSA", ("EdDSA", "Ed25519")),
    ],
)
def test_keys_of_every_kind(alg: str, fitting: tuple[str, ...]) -> None:
    parsed = parse_key_set(text(jwk(alg, kid="k")))
    (key,) = parsed.keys.keys
    assert (key.kid, key.algorithms, parsed.skipped) == ("k", fitting, ())
    assert read(write(parsed.keys)) == parsed.keys
    (only,) = parse_key_set(text({**jwk(alg, kid="k"), "alg": alg})).keys.keys
    assert only.algorithms == (("EdDSA", "Ed25519") if alg == "EdDSA" else (alg,))


def test_the_same_keys_are_the_same_bytes() -> None:
    one, other = jwk("ES256", kid="a"), jwk("RS256", kid="b")
    plain = key_set(one, other)
    spaced = json.dumps(
        {"x": [1], "keys": [dict(reversed(one.items())), {**other, "x5t": "?"}]}, indent=4
    )
    assert write(parse_key_set(spaced.encode()).keys) == plain
    assert key_set(one, other, one) == plain
    assert key_set(other, one) != plain


@pytest.mark.parametrize(
    "member",
    [
        jwk("RS256", use="enc"),
        jwk("RS256", use="tls"),
        {**jwk("ES256"), "key_ops": ["deriveKey"]},
        {"kty": "OKP", "crv": "X25519", "x": "A" * 43},
        {"kty": "oct", "k": "AA", "use": "enc"},
    ],
)
def test_keys_that_are_not_for_signatures_are_passed_over_without_a_word(
    member: dict[str, Any],
) -> None:
    parsed = parse_key_set(text(member, jwk("ES256")))
    assert (len(parsed.keys.keys), parsed.skipped) == (1, ())


def weak(bits: int) -> dict[str, Any]:
    key = rsa.generate_private_key(65537, bits).public_key()
    made: dict[str, Any] = RSAAlgorithm.to_jwk(key, as_dict=True)
    return {**made, "kid": "weak"}


def number(value: int) -> str:
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (3, r"keys\[0\]: not an object"),
        ({"kty": "oct", "k": "c2VjcmV0", "kid": "s"}, r'keys\[0\] \(kid "s"\): a shared secret'),
        ({"kty": "XYZ"}, "kty is not RSA, EC or OKP"),
        ({}, "kty is not"),
        (weak(1024), r'\(kid "weak"\): an RSA key of 1024 bits; it must have 2048 to 8192'),
        ({**jwk("RS256"), "n": number(1 << 8192 | 1)}, "8193 bits"),
        ({**jwk("RS256"), "e": number(1 << 32 | 1)}, "exponent has more than 32 bits"),
        ({**jwk("RS256"), "e": number(4)}, "n and e are not a valid RSA key"),
        ({**jwk("RS256"), "e": number(1)}, "n and e are not a valid RSA key"),
        ({**jwk("RS256"), "e": "AQAB="}, "its e is missing, or not base64url"),
        ({**jwk("RS256"), "n": "*"}, "its n is missing, or not base64url"),
        ({**jwk("RS256"), "n": 5}, "its n is missing"),
        ({**jwk("RS256"), "d": "AQAB"}, "the set contains a private key"),
        ({**jwk("ES256"), "d": "AQAB"}, "the set contains a private key"),
        ({**jwk("RS256"), "alg": "HS256"}, "its alg does not match its type .allowed: RS256"),
        ({**jwk("RS256"), "alg": "none"}, "its alg does not match"),
        ({**jwk("RS256"), "alg": ["RS256"]}, "its alg does not match"),
        ({**jwk("ES256"), "alg": "ES384"}, "allowed: ES256"),
        ({**jwk("ES256"), "crv": "P-384"}, "have 48 octets each"),
        ({**jwk("ES256"), "crv": "secp256k1"}, "crv is not P-256"),
        ({**jwk("ES256"), "crv": ["P-256"]}, "crv is not P-256"),
        ({**jwk("ES256"), "y": jwk("ES256")["x"]}, "not a point of P-256"),
        ({**jwk("ES256"), "x": "A" * 43, "y": "A" * 43}, "not a point of P-256"),
        ({**jwk("EdDSA"), "x": "AAAA"}, "32 octets"),
        ({**jwk("EdDSA"), "crv": "Ed448"}, "crv is not Ed25519"),
        ({**jwk("ES256"), "kid": 7}, "kid is not a string"),
        ({**jwk("ES256"), "kid": "k" * 257}, "kid is not a string of at most 256"),
        ({**jwk("ES256"), "use": 1}, "use is not"),
        ({**jwk("ES256"), "key_ops": "verify"}, "key_ops is not"),
    ],
)
def test_keys_that_are_not_used_are_told(member: Any, said: str) -> None:
    with pytest.raises(KeySetError, match=said):
        parse_key_set(text(member))
    parsed = parse_key_set(text(member, jwk("ES256", 1, kid="good")))
    (skipped,) = parsed.skipped
    assert [one.kid for one in parsed.keys.keys] == ["good"]
    for value in member.values() if isinstance(member, dict) else ():
        assert not isinstance(value, str) or len(value) < 20 or value not in skipped


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"[]", 'an object with a list "keys"'),
        (b"{}", 'an object with a list "keys"'),
        (b'{"keys":{}}', 'an object with a list "keys"'),
        (b'{"kty":"RSA"}', "a single key"),
        (b'{"keys":[]}', "it has no key for signatures"),
        (b'{"keys":[],"keys":[]}', "twice"),
        (b"[" * 5000, "too many"),
        (b"[" * 2000, "too deeply"),
        (b"-----BEGIN PUBLIC KEY-----", "the text is PEM"),
        (b" " * SET_LIMIT + b"{}", "at most 1048576"),
        (text(*[3] * (KEYS_LIMIT + 1)), "65 keys .at most 64"),
    ],
)
def test_sets_that_are_none(data: bytes, said: str) -> None:
    with pytest.raises(KeySetError, match=said):
        parse_key_set(data)


def test_as_many_as_may_be() -> None:
    keys = [jwk("ES256", kid=f"k{n}") for n in range(KEYS_LIMIT)]
    assert len(read(key_set(*keys)).keys) == KEYS_LIMIT


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.integers(0, 8000).map(lambda at: at.to_bytes(2, "big")))
def test_bytes_that_nobody_wrote_are_refused(data: bytes) -> None:
    good = key_set(jwk("ES256", kid="a"), jwk("RS256"))
    at = int.from_bytes(data[:2], "big") % len(good)
    for bad in (data, good[:at], good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :]):
        try:
            keys = read(bad)
        except KeySetError:
            continue
        assert read(write(keys)) == keys


def test_written_keys_are_held_to_the_same_rules() -> None:
    (key,) = read(key_set(jwk("ES256"))).keys
    for algorithms in (("RS256",), (), ("ES256", "HS256"), ("",)):
        with pytest.raises(KeySetError, match="does not support its algorithms"):
            read(write(key_set_module.KeySet((key._replace(algorithms=algorithms),))))
    small = rsa.generate_private_key(65537, 1024).public_key()
    spki = small.public_bytes(
        key_set_module.Encoding.DER, key_set_module.PublicFormat.SubjectPublicKeyInfo
    )
    with pytest.raises(KeySetError, match="does not support its algorithms"):
        read(write(key_set_module.KeySet((key._replace(algorithms=("RS256",), spki=spki),))))
