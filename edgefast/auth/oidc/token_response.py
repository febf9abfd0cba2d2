"""Token response: the answer of a token endpoint, and the requests for it.

In: status and body of the answer. Out: `TokenResponse`, or TokenError: the provider rejects the
code or token (`rejected`), or its answer cannot be used.
Source: RFC 6749 sections 2.3.1, 4.1.3, 5.1, 5.2 and 6; OpenID Connect Core 1.0 sections 3.1.3.3
and 12.
Must never: put a code, a token or a text of the provider into an error.
"""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote, urlencode

import msgspec

__all__ = [
    "ID_TOKEN_LIMIT",
    "RESPONSE_LIMIT",
    "TOKEN_LIMIT",
    "TokenError",
    "TokenResponse",
    "basic_credentials",
    "code_form",
    "encode_form",
    "fit_tokens",
    "parse_token_response",
    "refresh_form",
    "revocation_form",
]

#: Bytes of an answer of a token endpoint. An access token may be large where it is not forwarded.
RESPONSE_LIMIT = 256 * 1024
#: Characters of an ID token, and of each other one, that a worker gets: more never fits into cookies.
#: All of them fit into one frame (edgefast/proxy/control).
ID_TOKEN_LIMIT = 24 * 1024
TOKEN_LIMIT = 16 * 1024
#: Seconds that an `expires_in` counts at most.
_LONGEST = 400 * 86_400
#: Statuses that do not mean that the code or token is rejected: Request Timeout, Too Early, Too Many Requests.
_LATER = (408, 425, 429)


class TokenError(Exception):
    """No tokens, with the reason."""

    def __init__(self, message: str, *, rejected: bool = False) -> None:
        super().__init__(message)
        self.rejected = rejected  # the provider does not accept the code or the refresh token


class TokenResponse(msgspec.Struct, frozen=True, array_like=True):
    """Tokens of one login or refresh."""

    id_token: str = ""
    access_token: str = ""
    refresh_token: str = ""
    expires_in: int = 0  # seconds; 0: absent

    def __repr__(self) -> str:
        return "TokenResponse(<redacted>)"


class _Answer(msgspec.Struct, frozen=True):
    access_token: str
    token_type: str
    id_token: str | None = None
    refresh_token: str | None = None
    expires_in: float | str | None = None


class _Failure(msgspec.Struct, frozen=True):
    error: str = ""


_ANSWER: msgspec.json.Decoder[_Answer] = msgspec.json.Decoder(_Answer)
_FAILURE: msgspec.json.Decoder[_Failure] = msgspec.json.Decoder(_Failure)


def parse_token_response(status: int, body: bytes) -> TokenResponse:
    """Parse an answer. Raises TokenError."""
    if status != 200:
        raise _failure(status, body)
    try:
        found = _ANSWER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise TokenError("the answer of the token endpoint is not valid") from None
    if found.token_type.lower() != "bearer":
        raise TokenError("the token endpoint returned tokens of another type than Bearer")
    tokens = (found.access_token, found.id_token or "", found.refresh_token or "")
    if not all(one.isascii() and (one.isprintable() and " " not in one) for one in tokens):
        raise TokenError("the answer of the token endpoint has a token with invalid characters")
    return TokenResponse(tokens[1], tokens[0], tokens[2], _read_seconds(found.expires_in))


def fit_tokens(response: TokenResponse, *, access: bool) -> TokenResponse:
    """Return what a session can have; `access`: it may have the access token. Raises TokenError."""
    for token, limit in (
        (response.id_token, ID_TOKEN_LIMIT),
        (response.refresh_token, TOKEN_LIMIT),
    ):
        if len(token) > limit:
            text = f"a token has more than {limit} characters, cookies cannot keep it"
            raise TokenError(text, rejected=True)
    if access and len(response.access_token) <= TOKEN_LIMIT:
        return response
    return msgspec.structs.replace(response, access_token="")


def _failure(status: int, body: bytes) -> TokenError:
    try:
        error = _FAILURE.decode(body).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        error = ""
    if error in ("invalid_client", "unauthorized_client"):
        return TokenError(f"the provider does not accept the client ({error})")
    if error and 400 <= status < 500 and status not in _LATER:
        return TokenError("the provider does not accept the code or token", rejected=True)
    return TokenError(f"the token endpoint answered with status {status}")


def _read_seconds(given: float | str | None) -> int:
    try:
        seconds = float(given or 0)
    except ValueError:
        return 0
    return int(min(seconds, _LONGEST)) if seconds > 0 else 0  # also not for NaN


def code_form(code: str, redirect_uri: str, verifier: str) -> tuple[tuple[str, str], ...]:
    """Return the form that exchanges a code."""
    return (
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_uri),
        ("code_verifier", verifier),
    )


def refresh_form(token: str) -> tuple[tuple[str, str], ...]:
    """Return the form that refreshes tokens."""
    return (("grant_type", "refresh_token"), ("refresh_token", token))


def revocation_form(token: str) -> tuple[tuple[str, str], ...]:
    """Return the form that revokes a refresh token (RFC 7009 2.1)."""
    return (("token", token), ("token_type_hint", "refresh_token"))


def basic_credentials(client_id: str, secret: bytes) -> str:
    """Return the value of `Authorization` for a client (RFC 6749 2.3.1: both are form-encoded first)."""
    pair = quote(client_id, safe="").encode() + b":" + quote(secret, safe="").encode()
    return "Basic " + b64encode(pair).decode()


def encode_form(fields: tuple[tuple[str, str], ...]) -> bytes:
    """Return a form as the body of a request."""
    return urlencode(fields).encode()
