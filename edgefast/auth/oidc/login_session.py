"""Login session: the tokens of a logged-in browser, in encrypted cookies.

In: tokens of a provider, the cookies of a request. Out: the cookies of a session, and the session of
cookies. A value that is longer than CHUNK is split; the first cookie begins with the number of
them. A session that is too large loses its access token, before the login fails.
Source: RFC 6265bis section 5.6 (a browser keeps 4,096 bytes of name and value).
Must never: put a token into a cookie in clear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from edgefast.auth.oidc.cookie_cipher import CookieCipher

__all__ = [
    "CHUNK",
    "CHUNKS",
    "LoginSession",
    "OpenedSession",
    "join_chunks",
    "names_of_session",
    "open_session",
    "seal_session",
]

#: Characters of a cookie's value, and cookies of one session.
CHUNK = 3500
CHUNKS = 4
_PURPOSE = b"session"


class LoginSession(msgspec.Struct, frozen=True, array_like=True):
    """One logged-in browser. Times are Unix seconds."""

    id_token: str
    access_token: str = ""  # "": not forwarded, or too large
    refresh_token: str = ""
    began: float = 0.0
    expires: float = 0.0  # the tokens are not valid any more
    refresh_at: float = 0.0  # new ones are requested from here on; 0.0: never
    ends: float = 0.0  # a new login is required, refreshed or not

    def __repr__(self) -> str:
        return "LoginSession(<redacted>)"


_DECODER: msgspec.msgpack.Decoder[LoginSession] = msgspec.msgpack.Decoder(LoginSession)


class OpenedSession(NamedTuple):
    """A session as a request brings it."""

    session: LoginSession
    stale: bool  # a newer key should encrypt it


def names_of_session(base: str) -> list[str]:
    """Return the names of all cookies that a session may have."""
    return [base, *(f"{base}-{at}" for at in range(1, CHUNKS))]


def join_chunks(base: str, cookies: Mapping[str, str]) -> str:
    """Return the sealed text of a session; "" if a part of it is missing."""
    first = cookies.get(base, "")
    count = first[:1]
    if not count or count not in "1234"[:CHUNKS]:
        return ""
    parts = [first[1:], *(cookies.get(f"{base}-{at}", "") for at in range(1, int(count)))]
    return "".join(parts) if all(parts) else ""


def open_session(cipher: CookieCipher, text: str, now: float) -> OpenedSession | None:
    """Return the session of a sealed text, if it has not ended."""
    opened = cipher.open(_PURPOSE, text.encode()) if text else None
    if opened is None:
        return None
    try:
        session = _DECODER.decode(opened.content)
    except msgspec.MsgspecError:
        return None
    return OpenedSession(session, opened.stale) if now < session.ends else None


def seal_session(
    cipher: CookieCipher, base: str, session: LoginSession
) -> list[tuple[str, str]] | None:
    """Return names and values of its cookies; None: it is too large, or there is no key."""
    for one in _smaller(session):
        text = cipher.seal(_PURPOSE, msgspec.msgpack.encode(one))
        if not text:
            return None
        parts = [text[at : at + CHUNK - 1] for at in range(0, len(text), CHUNK - 1)]
        if len(parts) <= CHUNKS:
            values = [f"{len(parts)}{parts[0]}", *parts[1:]]
            return list(zip(names_of_session(base), values, strict=False))
    return None


def _smaller(session: LoginSession) -> Iterable[LoginSession]:
    yield session
    if session.access_token:
        yield msgspec.structs.replace(session, access_token="")
