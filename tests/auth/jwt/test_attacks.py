"""Tokens as attackers write them: not one of them is good, whoever else would take it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from auth.jwt.issuer import b64, claims, judge, jwk, private_key, provider, sign, token
from edgefast.auth.jwt.compact import TOKEN_LIMIT

pytestmark = pytest.mark.pure

SPEC = provider(jwk("ES256", kid="k1"), jwk("RS256", kid="k2"), jwk("EdDSA", kid="k3"))
PAYLOAD = json.dumps(claims()).encode()


def words(*tokens: bytes) -> set[str]:
    outcomes = [judge(one, SPEC) for one in tokens]
    assert all(one.status == 401 and one.claims is None and not one.lines for one in outcomes)
    return {one.word for one in outcomes}


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", "none\0"])
def test_none(alg: str) -> None:
    head = b64(json.dumps({"alg": alg}).encode()) + b"." + b64(PAYLOAD)
    assert words(head + b".", head, head + b"..") == {"malformed"}
    assert words(head + b".AA", sign(json.dumps({"alg": alg}).encode(), PAYLOAD)) == {"algorithm"}


def test_a_public_key_as_a_secret() -> None:
    public = private_key("RS256").public_key()
    secrets = [
        public.public_bytes(encoding, form)
        for encoding in (Encoding.PEM, Encoding.DER)
        for form in (PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1)
    ]
    secrets += [json.dumps(jwk("RS256")).encode(), b"", jwk("RS256")["n"].encode()]
    for kid in ({}, {"kid": "k2"}):
        for size in ("256", "384", "512"):
            head = b64(json.dumps({"alg": f"HS{size}", **kid}).encode()) + b"." + b64(PAYLOAD)
            made = [hmac.digest(secret, head, f"sha{size}") for secret in secrets]
            assert words(*(head + b"." + b64(one) for one in made)) == {"algorithm"}


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"]},
        {"crit": []},
        {"crit": None},
        {"crit": ["b64"], "b64": False},
        {"b64": False},
        {"b64": True},
        {"kid": 7},
        {"kid": None},
        {"kid": ["k1"]},
        {"kid": "k" * 257},
        {"typ": ["JWT"]},
        {"cty": 1},
        {"alg": None},
        {"alg": ["ES256"]},
        {"alg": {"ES256": 1}},
        {"alg": "E" * 17},
    ],
)
def test_headers_that_are_not_understood(header: dict[str, object]) -> None:
    made = sign(json.dumps({"alg": "ES256", **header}).encode(), PAYLOAD)
    assert words(made) == {"malformed"}


@pytest.mark.parametrize("place", ["jwk", "jku", "x5u", "x5c", "x5t"])
def test_a_key_that_a_token_brings_along(place: str) -> None:
    own = jwk("ES256", 5, kid="k1")
    brought: object = {"jwk": own, "x5c": [base64.b64encode(b"\x30\x00").decode()]}.get(
        place, "https://evil.example.com/keys"
    )
    header = json.dumps({"alg": "ES256", "kid": "k1", place: brought}).encode()
    assert words(sign(header, PAYLOAD, number=5)) == {"signature"}
    assert judge(sign(header, PAYLOAD), SPEC).good, "it is not looked at"


@pytest.mark.parametrize(
    "kid",
    ["../../dev/null", "' OR 1=1 --", "k1\0", "https://evil.example.com", "\u2028", "K1", " k1"],
)
def test_names_of_keys_are_names(kid: str) -> None:
    assert words(sign(json.dumps({"alg": "ES256", "kid": kid}).encode(), PAYLOAD)) == {"kid"}


@pytest.mark.parametrize(
    "header",
    [
        b'{"alg":"none","alg":"ES256"}',
        b'{"alg":"ES256","alg":"none"}',
        b'{"alg":"ES256","al\\u0067":"ES256"}',
        b'{"alg":"ES256","kid":"k1","kid":"k2"}',
        b'["ES256"]',
        b'"ES256"',
        b"null",
        b'{"alg":"ES256"}}',
        b'{"alg":"ES256"} {}',
        b'{"alg":"ES256",}',
        b"{alg:'ES256'}",
        b'\xef\xbb\xbf{"alg":"ES256"}',
        b'{"alg":"ES256"}\0',
        b'{"alg":"ES256","x":NaN}',
        b'{"alg":"ES256","x":"\xff"}',
        b'{"alg":"ES256","x":"\\ud800"}',
        b'{"alg":"ES256","x":' + b"[" * 33 + b"]" * 33 + b"}",
        b'{"alg":"ES256","x":"' + b"a" * 8192 + b'"}',
    ],
)
def test_headers_that_can_be_read_in_two_ways(header: bytes) -> None:
    assert words(sign(header, PAYLOAD)) == {"malformed"}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}{}",
        b"[]",
        b"3",
        b'"x"',
        PAYLOAD[:-1] + b',"exp":9999999999}',
        PAYLOAD[:-1] + b',"sub":"admin"}',
        PAYLOAD[:-1] + b',"x":{"a":1,"a":2}}',
        PAYLOAD[:-1] + b',"x":1e999}',
        PAYLOAD[:-1] + b',"x":' + b"9" * 5000 + b"}",
        PAYLOAD[:-1] + b',"x":' + b"[" * 3000 + b"]" * 3000 + b"}",
        PAYLOAD[:-1] + b',"x":' + b'{"a":' * 1500 + b"1" + b"}" * 1500 + b"}",
        PAYLOAD[:-1] + b',"x":"' + b"a" * TOKEN_LIMIT + b'"}',
    ],
)
def test_claims_that_can_be_read_in_two_ways_or_are_too_much(payload: bytes) -> None:
    assert words(sign(b'{"alg":"ES256"}', payload)) == {"malformed"}


def test_spellings_of_base64() -> None:
    good = token("ES256", header={"kid": "k1"})
    head, payload, signature = good.split(b".")
    assert judge(good, SPEC).good
    last = signature[-1:]
    assert last in b"AQgw"  # two bits that say something, four that say nothing
    idle = bytes([last[0] + 1])
    spellings = [
        head + b"=." + payload + b"." + signature,
        good + b"==",
        good + b"=",
        good + b"\n",
        b" " + good,
        good.replace(b".", b". ", 1),
        head + b"\r\n" + b"." + payload + b"." + signature,
        good[:-1] + idle,
        good + b"AAA",
        good + b".",
        good + b".AAAA",
        b"." + good,
        head + b"." + payload,
        head + b".." + signature,
        b"." + payload + b"." + signature,
        b"..",
        b"",
        b".",
        good.replace(b"e", b"\xc3\xa9", 1),
        good.replace(b"-", b"+").replace(b"_", b"/")
        + (b"" if b"-" in good or b"_" in good else b"+"),
        good + b"." + b"A" * TOKEN_LIMIT,
    ]
    assert words(*spellings) == {"malformed"}
    assert words(good + b"AAAA") == {"signature"}


@pytest.mark.parametrize("r", [0, 1, 2**256 - 1])
@pytest.mark.parametrize("s", [0, 2**256 - 1])
def test_signatures_of_nothing(r: int, s: int) -> None:
    head, payload, _ = token("ES256").split(b".")
    proof = b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    assert words(head + b"." + payload + b"." + proof) == {"signature"}


def test_a_signature_in_der_is_none() -> None:
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    head, payload, signature = token("ES256").split(b".")
    raw = base64.urlsafe_b64decode(signature + b"==")
    der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    assert words(head + b"." + payload + b"." + b64(der)) == {"signature"}


def test_parts_of_several_tokens() -> None:
    one, other = token("RS256", sub="jane").split(b"."), token("RS256", sub="admin").split(b".")
    assert words(b".".join((one[0], other[1], one[2]))) == {"signature"}
    assert hashlib.sha256(one[1]).digest() != hashlib.sha256(other[1]).digest()


def test_an_encrypted_token_is_none() -> None:
    header = b64(b'{"alg":"RSA-OAEP","enc":"A256GCM"}')
    assert words(header + b".AAAA.AAAA.AAAA.AAAA") == {"malformed"}
