"""Credentials of the rows about policies: passwords with their hashes, an issuer's keys, tokens that are good, expired, forged, of no known key, or giant.

In: how many. Out: text for configurations, and values of Authorization for requests. Keys are made in each run. Must never be looked at while a proxy is measured:
making them takes time.
"""

import base64
import json
import time
from functools import cache
from typing import Any

import bcrypt
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example.com"
AUDIENCE = "bench"
USER, PASSWORD = "ann", "opensesame"
APR1 = "$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw920"  # of PASSWORD
COST = 10
GIANT = 100_000
ALGORITHMS = ("RS256", "ES256", "ES384", "EdDSA")
_VALID_SECONDS = 3600


def make_htpasswd(apr1: bool = False) -> str:
    """A file with one user."""
    if apr1:
        return f"{USER}:{APR1}\n"
    return f"{USER}:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(COST)).decode()}\n"


def make_basic(password: str) -> str:
    """A value of Authorization."""
    return "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()


@cache
def _private_key(alg: str) -> Any:
    if alg == "RS256":
        return rsa.generate_private_key(65537, 2048)
    if alg == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1() if alg == "ES256" else ec.SECP384R1())


def make_key_set() -> str:
    """What the issuer publishes: a key of each algorithm, named by it."""
    makers: dict[str, Any] = {"RS256": RSAAlgorithm, "EdDSA": OKPAlgorithm}
    keys = []
    for alg in ALGORITHMS:
        maker = makers.get(alg, ECAlgorithm)
        made = maker.to_jwk(_private_key(alg).public_key(), as_dict=True)
        made.pop("key_ops", None)
        keys.append({**made, "use": "sig", "kid": alg, "alg": alg})
    return json.dumps({"keys": keys})


def make_token(
    alg: str, subject: str, kid: str | None = None, seconds: float = _VALID_SECONDS
) -> str:
    """A token about as large as those of issuers, good for so many seconds from now."""
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": subject,
        "iat": now,
        "exp": int(now + seconds),
        "jti": "9d2f1c9e-7f1a-4a55-8d5e-3b8e2f0e5a11",
        "scope": "openid profile email",
        "realm_access": {"roles": ["offline_access", "uma_authorization", "user"]},
        "email": f"{subject}@example.com",
    }
    return sign(claims, alg, kid)


def sign(claims: dict[str, Any], alg: str, kid: str | None = None) -> str:
    """A token with these claims."""
    return jwt.encode(claims, _private_key(alg), alg, {"kid": kid or alg})


def forge(token: str) -> str:
    """The same claims with a signature that nobody made."""
    head, _, signature = token.rpartition(".")
    return f"{head}.{signature[:8]}{'A' * 8}{signature[16:]}"


def make_giant() -> str:
    """What no proxy should read to its end."""
    return make_token("ES256", "x" * (3 * GIANT // 4))
