"""An issuer: keys of every kind, key sets, tokens, and tokens as no issuer would make them."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from edgefast.auth.jwt import key_set as key_set_module
from edgefast.auth.jwt.compact import Malformed, read_token
from edgefast.auth.jwt.outcome import Outcome
from edgefast.auth.jwt.token_check import Provider, TrustedKeys, look_over
from edgefast.ir.credentials import JwtProvider

NOW = 1_900_000_000
ISSUER = "https://issuer.example.com"
ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
_CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}


def private_key(alg: str, number: int = 0) -> Any:
    """Return the key that this issuer signs with; `number` tells keys of one algorithm apart."""
    if alg[:2] in ("RS", "PS"):
        return _rsa(number)
    return _ed(number) if alg == "EdDSA" else _ec(alg, number)


@cache
def _rsa(number: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def _ed(number: int) -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


@cache
def _ec(alg: str, number: int) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(_CURVES[alg]())


def jwk(alg: str, number: int = 0, **more: Any) -> dict[str, Any]:
    """Return the public key as an issuer publishes it."""
    public = private_key(alg, number).public_key()
    of = (
        RSAAlgorithm if alg[:2] in ("RS", "PS") else OKPAlgorithm if alg == "EdDSA" else ECAlgorithm
    )
    made: dict[str, Any] = of.to_jwk(public, as_dict=True)
    made.pop("key_ops", None)
    return {**made, "use": "sig", **more}


def key_set(*keys: dict[str, Any]) -> bytes:
    """Return keys as the IR has them."""
    return key_set_module.write(
        key_set_module.parse_key_set(json.dumps({"keys": keys}).encode()).keys
    )


def claims(**more: Any) -> dict[str, Any]:
    """Return claims that are good now; None takes one away."""
    base = {"iss": ISSUER, "sub": "jane", "aud": "api", "exp": NOW + 300, "iat": NOW, **more}
    return {name: value for name, value in base.items() if value is not None}


def token(
    alg: str = "ES256", number: int = 0, header: dict[str, Any] | None = None, **more: Any
) -> bytes:
    """Return a signed token."""
    return jwt.encode(claims(**more), private_key(alg, number), alg, header).encode()


def b64(data: bytes) -> bytes:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def sign(header: bytes, payload: bytes, alg: str = "ES256", number: int = 0) -> bytes:
    """Return a token of these texts, which may be anything, truly signed."""
    signed = b64(header) + b"." + b64(payload)
    algorithm = jwt.get_algorithm_by_name(alg)
    return signed + b"." + b64(algorithm.sign(signed, private_key(alg, number)))


def provider(*keys: dict[str, Any], **more: Any) -> JwtProvider:
    """Return a provider with these keys."""
    named = {"name": "p", "issuer": ISSUER, "audiences": ("api",), **more}
    return JwtProvider(keys=key_set(*keys), **named)


def judge(data: bytes, *specs: JwtProvider, now: float = NOW) -> Outcome:
    """Return what comes of a token."""
    providers = [Provider(one, TrustedKeys(key_set_module.read(one.keys))) for one in specs]
    try:
        plan = look_over(read_token(data), providers, now)
    except Malformed:
        return Outcome("malformed")
    return plan if isinstance(plan, Outcome) else plan.try_keys()
