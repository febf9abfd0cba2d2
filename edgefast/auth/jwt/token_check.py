"""Token check: trusted keys, providers, exp, nbf, iss and aud of one token, checked against all providers.

In: ir.JwtProvider, key sets, tokens, the time.
Out: `look_over` returns the result that needs no key, or the keys to try. `try_keys` tries them and
may run in another thread. The first provider that accepts a token decides. Of several failures, the
most informative one is kept; "token for another audience" has the highest priority.
Must never: trust a key that its issuer no longer publishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from edgefast.auth.jwt.claim_access import header_lines
from edgefast.auth.jwt.compact import Token
from edgefast.auth.jwt.key_set import Key, KeySet
from edgefast.auth.jwt.outcome import Outcome, Word
from edgefast.auth.jwt.signature import ALGORITHMS, SLOW, Check, is_signed
from edgefast.ir.credentials import JwtProvider

__all__ = ["SKEW", "Attempt", "Plan", "Provider", "TrustedKey", "TrustedKeys", "look_over"]

#: Seconds that clocks of issuers and ours may differ.
SKEW = 60
#: Keys that are tried for one token: one where it says which, as it should (RFC 7515 4.1.4), else those of an issuer that is between
#: two; and of all issuers that it may be of.
TRIES = 16
TRIES_OF_ALL = 64
#: Bytes of lines that claims make: each may be in many of them.
LINES_LIMIT = 32 * 1024

#: The more telling a failure is, the further in front.
_RANK: tuple[Word, ...] = ("keys", "kid", "signature", "algorithm", "no_expiration", "issuer")


class TrustedKey:
    """A key, as long as it is believed: what it verified is not asked again while `trusted`."""

    __slots__ = ("key", "trusted")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.trusted = True


class TrustedKeys:
    """The keys of one issuer, which change. None yet: `known` is False."""

    def __init__(self, keys: KeySet | None = None) -> None:
        self.known = False
        self._keys: dict[Key, TrustedKey] = {}
        self._named: dict[str, list[TrustedKey]] = {}
        if keys is not None:
            self.replace(keys)

    def replace(self, keys: KeySet | None) -> bool:
        """Believe these from now on, and no others; None: none at all. Returns whether that differs."""
        before = self._keys
        fresh = keys.keys if keys is not None else ()
        if self.known == (keys is not None) and tuple(before) == fresh:
            return False
        self._keys = {key: before.get(key) or TrustedKey(key) for key in fresh}
        for key, one in before.items():
            if key not in self._keys:
                one.trusted = False
        self.known = keys is not None
        self._named = {}
        for key, one in self._keys.items():
            self._named.setdefault(key.kid, []).append(one)
        return True

    def fitting(self, token: Token) -> list[TrustedKey] | Word:
        """Return the keys that may have signed a token, or why there are none."""
        if not self._keys:
            return "keys"
        named: Iterable[TrustedKey] = self._keys.values()
        if token.kid:  # a key that its issuer gave no name may have any
            named = [*self._named.get(token.kid, ()), *self._named.get("", ())]
            if not named:
                return "kid"
        found = [one for one in named if token.alg in one.key.algorithms]
        if not found:
            return "kid" if token.kid and token.kid not in self._named else "algorithm"
        return found if len(found) <= TRIES else "kid"


class Provider:
    """One issuer, as a policy has it. `keys` of a remote one are shared by all policies that ask for the same."""

    def __init__(self, spec: JwtProvider, keys: TrustedKeys) -> None:
        self.name = spec.name
        self.issuer = spec.issuer
        self.audiences = frozenset(spec.audiences)
        self.claim_headers = spec.claim_headers
        self.require_expiration = spec.require_expiration
        self.keys = keys


class Attempt(NamedTuple):
    """A key to try."""

    provider: Provider
    key: TrustedKey


class Plan:
    """What is left to do about a token whose signature has to be verified."""

    __slots__ = ("_attempts", "_token", "_word", "slow", "unknown")

    def __init__(
        self, token: Token, attempts: Sequence[Attempt], word: Word, unknown: tuple[Provider, ...]
    ) -> None:
        self._token = token
        self._attempts = attempts
        self._word = word
        self.unknown = unknown  # who may know the key when asked again
        self.slow = token.alg in SLOW and bool(attempts)

    def try_keys(self, is_signed: Check = is_signed) -> Outcome:
        """Verify; in whatever thread. `is_signed`: what does it, where it is not ours."""
        token, word = self._token, self._word
        denied: Outcome | None = None
        for provider, trusted in self._attempts:
            key = trusted.key
            if not is_signed(token.alg, key, token.signature, token.signed):
                word = _worse(word, "signature")
                continue
            until = float("inf") if token.expires is None else _plus(token.expires, SKEW)
            if provider.audiences and provider.audiences.isdisjoint(token.audiences):
                # Believed for a while, unless it may turn out to be another issuer's, for us.
                last = until if not self.unknown else 0.0
                denied = denied or Outcome("audience", provider.name, until=last, key=trusted)
                continue
            lines = header_lines(provider.claim_headers, token.claims)
            if len(lines) > LINES_LIMIT:
                return Outcome("malformed", provider.name)
            return Outcome("", provider.name, token.claims, lines, until, trusted)
        return denied or Outcome(word)


def look_over(token: Token, providers: Sequence[Provider], now: float) -> Outcome | Plan:
    """Say what can be said of a token without a key, or what is to be tried."""
    if token.alg not in ALGORITHMS:
        return Outcome("algorithm")
    if token.expires is not None and token.expires <= now - SKEW:
        return Outcome("expired")
    for begins in (token.begins, token.issued):
        if begins is not None and begins > now + SKEW:
            return Outcome("early")
    attempts: list[Attempt] = []
    unknown: list[Provider] = []
    word: Word = "issuer"
    for provider in providers:
        if provider.issuer and provider.issuer != token.issuer:
            continue
        if provider.require_expiration and token.expires is None:
            word = _worse(word, "no_expiration")
            continue
        fitting = provider.keys.fitting(token)
        if isinstance(fitting, str):
            word = _worse(word, fitting)
            if fitting in ("kid", "keys"):
                unknown.append(provider)
        else:
            attempts += [Attempt(provider, key) for key in fitting]
    if len(attempts) > TRIES_OF_ALL:
        return Outcome("kid")
    if attempts or unknown:
        return Plan(token, attempts, word, tuple(unknown))
    return Outcome(word)


def _worse(one: Word, other: Word) -> Word:
    return min(one, other, key=_RANK.index)


def _plus(seconds: int | float, more: int) -> float:
    try:
        return float(seconds + more)
    except OverflowError:  # an integer of hundreds of digits
        return float("inf")
