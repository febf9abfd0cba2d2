"""Signed tokens as no careful provider makes them: other algorithms, unknown keys, claims that are wrong or very long."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from functools import cache
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, RSAKey


def signing_key(algorithm: str, number: int) -> RSAKey | ECKey:
    """Return a key of this process; `number` tells keys of one algorithm apart."""
    return _rsa(number) if algorithm == "RS256" else _ec(number)


@cache
def _rsa(number: int) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": f"rsa-{number}", "use": "sig", "alg": "RS256"})


@cache
def _ec(number: int) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": f"ec-{number}", "use": "sig", "alg": "ES256"})


def sign(claims: dict[str, Any], algorithm: str, number: int, secret: str) -> str:
    """Return a token. `algorithm`: RS256, ES256, none, HS256 (with `secret`) or HS256-public-key (with the RSA key in PEM)."""
    payload = json.dumps(claims).encode()
    if algorithm in ("RS256", "ES256"):
        key = signing_key(algorithm, number)
        header = {"alg": algorithm, "kid": key.kid, "typ": "JWT"}
        return jws.serialize_compact(header, payload, key, algorithms=[algorithm])
    kid = f"rsa-{number}"
    name = algorithm.removesuffix("-public-key")
    signed = f"{_encode(json.dumps({'alg': name, 'kid': kid}).encode())}.{_encode(payload)}"
    if algorithm == "none":
        return f"{signed}."
    pem = signing_key("RS256", number).as_pem(private=False)
    key_bytes = secret.encode() if algorithm == "HS256" else pem
    return f"{signed}.{_encode(hmac.digest(key_bytes, signed.encode(), hashlib.sha256))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
