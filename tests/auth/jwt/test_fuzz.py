"""Thousands of tokens that are nearly good: what is good here is good for PyJWT and joserfc, and unchanged."""

from __future__ import annotations

import json
import random
from typing import Any

import jwt
import pytest
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import import_key

from auth.jwt.issuer import ISSUER, NOW, b64, claims, judge, jwk, private_key, provider, sign, token

pytestmark = [
    pytest.mark.pure,
    pytest.mark.filterwarnings("ignore:EdDSA is deprecated"),  # RFC 9864, by joserfc
]

_ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
_SPEC = provider(*(jwk(alg, kid=alg) for alg in ("RS256", "ES256", "EdDSA")))
_DATES = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}  # of the library's own clock


def pyjwt_takes(data: bytes) -> bool:
    for alg in _ALGORITHMS:
        public = private_key(alg).public_key()
        try:
            jwt.decode(data, public, [alg], audience="api", issuer=ISSUER, options=_DATES)
            return True
        except (jwt.InvalidTokenError, ValueError):
            continue
    return False


def joserfc_takes(data: bytes) -> bool:
    for alg in _ALGORITHMS:
        member = jwk(alg)
        try:
            found = joserfc_jwt.decode(data, import_key(member), algorithms=[alg])
            joserfc_jwt.JWTClaimsRegistry(
                now=lambda: NOW,
                leeway=60,
                iss={"essential": True, "value": ISSUER},
                aud={"essential": True, "value": "api"},
            ).validate(found.claims)
            return True
        except Exception:
            continue
    return False


def mutate(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    match chance.randrange(8):
        case 0:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        case 2:
            return data[:at] + data[at + 1 :]
        case 3:
            return (
                data[:at] + chance.choice((b".", b"=", b"A", b"\n", b"-", b"_", b"+")) + data[at:]
            )
        case 4:
            return data[:at]
        case 5:
            end = chance.randrange(at, len(data) + 1)
            return data[:at] + data[end:]
        case 6:
            parts = data.split(b".")
            chance.shuffle(parts)
            return b".".join(parts)
        case _:
            last = data[-1:]
            return data[:-1] + chance.choice([bytes([last[0] + 1]), last + b"=", last + last])


@pytest.mark.parametrize("alg", _ALGORITHMS)
def test_mutated_bytes(alg: str) -> None:
    chance = random.Random(f"bytes {alg}")
    good = token(alg, header={"kid": "RS256" if alg == "PS256" else alg})
    assert judge(good, _SPEC).good and pyjwt_takes(good) and joserfc_takes(good)
    for _ in range(1500):
        bad = mutate(good, chance)
        if chance.random() < 0.3:
            bad = mutate(bad or b".", chance)
        if judge(bad, _SPEC).good:
            assert bad == good


_HEADER = ("alg", "kid", "crit", "typ", "b64", "cty")
_PAYLOAD = ("iss", "aud", "exp", "nbf", "iat", "sub", "jti", "alg", "x")


def _change(value: dict[str, Any], names: tuple[str, ...], chance: random.Random) -> dict[str, Any]:
    values: list[Any] = [
        None, True, 0, -1, 1, 1.5, NOW, NOW - 59, NOW - 61, NOW + 59, NOW + 61, NOW + 1e9, 1e300, 10**30, "", "api", "API", ISSUER,
        str(NOW), [], ["api"], ["x", "api"], [1], {}, {"a": [{}]}, "none", "HS256", "RS256", "PS256", "ES256", "EdDSA", "\u00e9\n",
    ]  # fmt: skip
    name = chance.choice(names)
    changed = dict(value)
    if chance.random() < 0.2:
        changed.pop(name, None)
    else:
        changed[name] = chance.choice(values)
    return changed


def test_signed_tokens_of_any_content() -> None:
    """What the issuer signs may be anything: never does it let in what either library keeps out."""
    chance = random.Random("content")
    good = 0
    for _ in range(4000):
        alg = chance.choice(("ES256", "EdDSA"))
        header: dict[str, Any] = {"alg": alg, "typ": "JWT"}
        if chance.random() < 0.5:
            header["kid"] = alg
        payload = claims(nbf=NOW)
        for _ in range(chance.randrange(3)):
            if chance.random() < 0.3:
                header = _change(header, _HEADER, chance)
            else:
                payload = _change(payload, _PAYLOAD, chance)
        made = sign(json.dumps(header).encode(), json.dumps(payload).encode(), alg)
        outcome = judge(made, _SPEC)
        if outcome.good:
            good += 1
            assert outcome.claims == payload
            assert pyjwt_takes(made), (header, payload)
            assert joserfc_takes(made), (header, payload)
            assert all(
                isinstance(payload.get(one, 0), int | float) for one in ("exp", "nbf", "iat")
            )
            assert payload.get("exp", NOW) > NOW - 60
            assert max(payload.get("nbf", 0), payload.get("iat", 0)) <= NOW + 60
    assert good > 800


def test_bytes_of_chance() -> None:
    chance = random.Random("noise")
    for _ in range(3000):
        parts = [chance.randbytes(chance.randrange(40)) for _ in range(3)]
        raw = b".".join(parts)
        assert judge(raw, _SPEC).word == "malformed"
        assert judge(b".".join(map(b64, parts)), _SPEC).word == "malformed"
