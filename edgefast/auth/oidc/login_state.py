"""Login state: one login in progress, between its redirect to the provider and the callback.

In: the target of a request, random bytes. Out: the cookie with the state, the address at the
provider; and the state again from the cookie and the callback. Each login has a cookie of its own,
so that logins of several tabs do not disturb each other.
Source: OpenID Connect Core 1.0 section 3.1.2, RFC 7636 (PKCE, S256), RFC 9207 (iss), RFC 6265bis
4.1.3 (prefixes of cookie names).
Must never: accept a callback without the cookie of the same browser, or return to another origin.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec

from edgefast.auth.oidc.cookie_cipher import CookieCipher

__all__ = [
    "LOGINS",
    "STATES_LIMIT",
    "Callback",
    "LoginState",
    "authorization_url",
    "name_of_state",
    "open_state",
    "parse_callback",
    "seal_state",
    "start_state",
    "oldest_states",
]

#: Logins in progress of one browser, and bytes of their cookies: the oldest one ends. The bytes are a
#: part of those that a request head may have, so that sessions and other cookies fit beside them.
LOGINS = 8
STATES_LIMIT = 8 * 1024
#: Bytes of the target to which a login returns; a longer one returns to "/".
TARGET_LIMIT = 512
#: Bytes of a callback's query, and of its parameters.
QUERY_LIMIT = 8192
_PARTS = 32
_PURPOSE = b"login"
_DECODER: msgspec.msgpack.Decoder[LoginState]


class LoginState(msgspec.Struct, frozen=True, array_like=True):
    """What a login needs at its callback."""

    id: str  # of its cookie
    secret: str  # with the id the parameter `state`
    nonce: str
    verifier: str  # PKCE
    origin: str  # of the request that began it: "https://shop.example.com"
    target: str  # path and query of that request
    redirect_uri: str
    until: float  # Unix seconds

    def __repr__(self) -> str:
        return "LoginState(<redacted>)"

    @property
    def parameter(self) -> str:
        """The parameter `state`."""
        return f"{self.id}.{self.secret}"


_DECODER = msgspec.msgpack.Decoder(LoginState)


class Callback(NamedTuple):
    """Parameters of a callback."""

    state: str
    code: str
    error: str
    issuer: str  # "": none


def start_state(
    origin: str,
    target: str,
    redirect_uri: str,
    now: float,
    lifetime: float,
    random: Callable[[int], bytes],
) -> LoginState:
    """Start a login; `now` and `lifetime` are seconds."""
    target = target if len(target) <= TARGET_LIMIT and target.startswith("/") else "/"
    return LoginState(
        id=f"{int(now * 1000):012x}{random(4).hex()}",  # in the order of time
        secret=_token(random(16)),
        nonce=_token(random(16)),
        verifier=_token(random(32)),
        origin=origin,
        target=target,
        redirect_uri=redirect_uri,
        until=now + lifetime,
    )


def name_of_state(base: str, state_id: str) -> str:
    """Return the name of the cookie of a login."""
    return f"{base}-{state_id}"


def seal_state(cipher: CookieCipher, state: LoginState) -> str:
    """Return the value of the cookie; "" if there is no key."""
    return cipher.seal(_PURPOSE + state.id.encode(), msgspec.msgpack.encode(state))


def open_state(
    cipher: CookieCipher, base: str, cookies: dict[str, str], parameter: str, now: float
) -> LoginState | None:
    """Return the login of a callback's `state`; None: this browser has none, or it is over."""
    state_id, dot, _ = parameter.partition(".")
    value = cookies.get(name_of_state(base, state_id)) if dot else None
    if value is None:
        return None
    opened = cipher.open(_PURPOSE + state_id.encode(), value.encode())
    if opened is None:
        return None
    try:
        state = _DECODER.decode(opened.content)
    except msgspec.MsgspecError:
        return None
    same = hmac.compare_digest(state.parameter.encode(), parameter.encode())
    return state if same and now < state.until else None


def oldest_states(base: str, cookies: Mapping[str, str], size: int) -> list[str]:
    """Return the cookies of logins that end because one with a cookie of `size` bytes starts, oldest first."""
    gone = sorted(one for one in cookies if one.startswith(base + "-"))
    kept = 0
    while gone and kept < LOGINS - 1:
        size += len(gone[-1]) + len(cookies[gone[-1]]) + len("=; ")
        if size > STATES_LIMIT:
            break
        gone.pop()
        kept += 1
    return gone


def authorization_url(
    endpoint: str,
    client_id: str,
    scopes: Iterable[str],
    resources: Iterable[str],
    state: LoginState,
) -> str:
    """Return the address at the provider to which the browser goes."""
    challenge = _token(hashlib.sha256(state.verifier.encode()).digest())
    query = urlencode(
        [
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", state.redirect_uri),
            ("scope", " ".join(scopes)),
            ("state", state.parameter),
            ("nonce", state.nonce),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256"),
            *(("resource", one) for one in resources),
        ]
    )
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"


def parse_callback(query: str) -> Callback | None:
    """Parse the query of a callback; None: it is not one, or a parameter is there twice."""
    if len(query) > QUERY_LIMIT:
        return None
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_PARTS, errors="strict")
    except ValueError:
        return None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in ("state", "code", "error", "iss"):
            if name in found:
                return None
            found[name] = value
    state, code, error = found.get("state", ""), found.get("code", ""), found.get("error", "")
    if not state or bool(code) == bool(error):
        return None
    return Callback(state, code, error, found.get("iss", ""))


def _token(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
