"""The identity provider of the examples: OpenID Connect for one user, jane, who is always logged in.

In: requests of browsers (/idp/authorize, /idp/end) and of the proxy (discovery, keys, tokens). Out: their answers. It verifies PKCE, and
accepts a code once. It is for trying: it asks for no password, and its client secret is in the example.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

#: A Service of this name is one.
SERVICE = "idp"
_CODES = 100  # logins in progress, the newest ones

_KEY = generate_private_key(SECP256R1())
_codes: dict[str, dict[str, str]] = {}

Reply = tuple[int, object, list[tuple[str, str]]]


def answer(target: str, headers: Mapping[str, str], body: bytes) -> Reply:
    """Answer one request: status, JSON, header lines."""
    issuer = f"http://{headers.get('host', 'localhost')}/idp"
    parts = urlsplit(target)
    asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
    match parts.path:
        case "/idp/.well-known/openid-configuration":
            return 200, _document(issuer), []
        case "/idp/keys":
            numbers = _KEY.public_key().public_numbers()
            x, y = (_text(one.to_bytes(32, "big")) for one in (numbers.x, numbers.y))
            return 200, {"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "1"}]}, []
        case "/idp/authorize":
            return _authorize(asked)
        case "/idp/token":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            return _exchange(issuer, form)
        case "/idp/end":
            return 302, {}, [("location", asked.get("post_logout_redirect_uri", "/"))]
    return 404, {}, []


def _document(issuer: str) -> dict[str, str]:
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/keys",
        "end_session_endpoint": f"{issuer}/end",
    }


def _authorize(asked: dict[str, str]) -> Reply:
    """Log in and send the browser back, without a question."""
    code = secrets.token_urlsafe(16)
    _codes[code] = asked
    while len(_codes) > _CODES:
        del _codes[next(iter(_codes))]
    query = urlencode({"code": code, "state": asked.get("state", "")})
    return 302, {}, [("location", f"{asked.get('redirect_uri', '/')}?{query}")]


def _exchange(issuer: str, form: dict[str, str]) -> Reply:
    asked = _codes.pop(form.get("code", ""), None)
    verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
    if asked is None or _text(verifier) != asked.get("code_challenge"):
        return 400, {"error": "invalid_grant"}, []
    now = int(time.time())
    claims = {
        "iss": issuer,
        "aud": asked["client_id"],
        "sub": "jane",
        "groups": ["staff"],
        "nonce": asked.get("nonce", ""),
        "iat": now,
        "exp": now + 300,
    }
    said = {"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "expires_in": 300}
    return 200, {**said, "id_token": _sign(claims)}, []


def _sign(claims: dict[str, object]) -> str:
    parts = [_text(json.dumps(one).encode()) for one in ({"alg": "ES256", "kid": "1"}, claims)]
    r, s = decode_dss_signature(_KEY.sign(".".join(parts).encode(), ECDSA(SHA256())))
    return ".".join((*parts, _text(r.to_bytes(32, "big") + s.to_bytes(32, "big"))))


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
