"""Compact serialization of a token: JWS (RFC 7515 7.1) around claims (RFC 7519).

In: untrusted bytes.
Out: a Token without verification, or Malformed. The parser is stricter than the RFCs, in line with
the libraries of issuers: base64url without padding and unused bits, unambiguous JSON, and checked
types of all claims that affect the decision.
Must never: use keys or compression from a header (jwk, jku, x5u, x5c, zip), or accept unknown
critical parameters (crit, b64).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from edgefast.auth.jwt.key_set import KID_LIMIT, decode_base64url
from edgefast.auth.jwt.strict_json import JsonError, parse_json

__all__ = ["TOKEN_LIMIT", "Malformed", "Token", "read_token"]

#: Bytes of a token: what a header line may have; those of large issuers have 1 to 3 KiB.
TOKEN_LIMIT = 16 * 1024
#: Bytes of its header in base64url: names of a key and an algorithm, perhaps a chain of certificates.
HEADER_LIMIT = 8 * 1024
#: Containers that may be open in its JSON.
DEPTH = 32
#: And those that may be in it, with brackets in text: each takes time of whoever has not proven anything yet.
CONTAINERS = 1024
#: Characters of an `alg`.
_ALG_LIMIT = 16

Number = int | float


class Malformed(ValueError):
    """It is no token, or not one that is understood whole."""


class Token(NamedTuple):
    """A token whose signature nobody verified yet."""

    alg: str
    kid: str  # "": it names no key
    claims: dict[str, Any]
    issuer: str | None
    audiences: tuple[str, ...]
    expires: Number | None  # Unix seconds
    begins: Number | None
    issued: Number | None
    signed: bytes  # what is signed of it
    signature: bytes


def read_token(data: bytes) -> Token:
    """Read a token. Raises Malformed."""
    if len(data) > TOKEN_LIMIT:
        raise Malformed("too long")
    head, _, rest = data.partition(b".")
    payload, _, last = rest.partition(b".")
    if not (head and payload and last) or len(head) > HEADER_LIMIT:
        raise Malformed("not three parts")
    signature = decode_base64url(last)  # a further dot is not base64url
    if not signature:
        raise Malformed("signature")
    header = _object(head)
    alg, kid = header.get("alg"), header.get("kid", "")
    if not isinstance(alg, str) or len(alg) > _ALG_LIMIT:
        raise Malformed("alg")
    if not isinstance(kid, str) or len(kid) > KID_LIMIT:
        raise Malformed("kid")
    if "crit" in header or "b64" in header:
        raise Malformed("an extension")
    if not isinstance(header.get("typ", ""), str) or not isinstance(header.get("cty", ""), str):
        raise Malformed("typ")
    claims = _object(payload)
    for name in ("iss", "sub", "jti"):
        if not isinstance(claims.get(name, ""), str):
            raise Malformed(name)
    return Token(
        alg,
        kid,
        claims,
        claims.get("iss"),
        _audiences(claims),
        _time(claims, "exp"),
        _time(claims, "nbf"),
        _time(claims, "iat"),
        data[: len(head) + 1 + len(payload)],
        signature,
    )


def _object(part: bytes) -> dict[str, Any]:
    text = decode_base64url(part)
    if text is None:
        raise Malformed("base64url")
    try:
        found = parse_json(text, DEPTH, CONTAINERS)
    except JsonError:
        raise Malformed("JSON") from None
    if not isinstance(found, dict):
        raise Malformed("no object")
    return found


def _audiences(claims: dict[str, Any]) -> tuple[str, ...]:
    found = claims.get("aud", [])
    if isinstance(found, str):
        return (found,)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise Malformed("aud")
    return tuple(found)


def _time(claims: dict[str, Any], name: str) -> Number | None:
    if name not in claims:
        return None
    found = claims[name]
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Malformed(name)
    return found
