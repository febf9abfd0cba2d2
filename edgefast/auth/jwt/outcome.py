"""Outcome of a token check: its claims, or a status and one word for logs; no other details are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from edgefast.auth.jwt.token_check import TrustedKey

__all__ = ["STATUS", "Outcome", "Word"]

Word = Literal[
    "",  # good
    "malformed",  # not a token, or not one that is understood whole
    "algorithm",  # its alg is none that the key is for
    "issuer",  # nobody whose tokens are believed
    "expired",
    "no_expiration",  # without the `exp` that its provider requires
    "early",  # not valid yet, or issued in the future
    "kid",  # a key that nobody knows
    "signature",
    "audience",  # good, for somebody else
    "keys",  # there are no keys to verify it with
    "busy",  # too many wait
]

STATUS: dict[Word, int] = {
    "": 0,
    "malformed": 401,
    "algorithm": 401,
    "issuer": 401,
    "expired": 401,
    "no_expiration": 401,
    "early": 401,
    "kid": 401,
    "signature": 401,
    "audience": 403,
    "keys": 503,  # not 401: clients would drop good tokens
    "busy": 503,
}


class Outcome:
    """What comes of one token. Of good ones: whose it is, what it says, and until when that is believed."""

    __slots__ = ("claims", "key", "lines", "provider", "status", "until", "user", "word")

    def __init__(
        self,
        word: Word,
        provider: str = "",
        claims: dict[str, Any] | None = None,
        lines: bytes = b"",
        until: float = 0.0,
        key: TrustedKey | None = None,
    ) -> None:
        self.word: Word = word
        self.status = STATUS[word]  # of the answer; 0: good
        self.provider = provider  # JwtProvider.name; "" where none is to be named
        self.claims = claims  # of a good one alone
        self.lines = lines  # "name: value" lines of claims, for the request to the backend
        self.until = until  # Unix seconds; of one that was verified
        self.key = key  # that verified it
        self.user: bytes | None = (
            None  # its subject as logs have it, made once by whoever says it; b"": it has none
        )

    @property
    def good(self) -> bool:
        """Whether it lets its bearer in."""
        return self.status == 0

    def __repr__(self) -> str:
        return f"Outcome({self.word or 'good'!r}, {self.provider!r})"
