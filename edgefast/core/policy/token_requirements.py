"""Token requirements: the tokens that a policy requires, from one set of places in requests.

In: ir.Jwt, tokens as requests carry them. Out: the outcome of a known token, in about a
microsecond; of any other at once or later (token_verification.py). A policy with providers that look in
different places has a verifier for each.
Must never: accept a provider's token from a place that this provider does not use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from edgefast.auth.jwt.key_set import read
from edgefast.auth.jwt.outcome import Outcome
from edgefast.auth.jwt.token_check import Provider, TrustedKeys
from edgefast.ir.credentials import CredentialExtractors, Jwt, JwtProvider

if TYPE_CHECKING:
    from edgefast.core.policy.remotekeys import RemoteSet
    from edgefast.core.policy.token_verification import Job, TokenVerifier, VerifyRequest

__all__ = ["Verifier", "make_verifiers"]


class Verifier:
    """Verifies the tokens that a policy requires, at one set of places in requests."""

    __slots__ = (
        "_clock",
        "_token_verifier",
        "_find",
        "headers",
        "jobs",
        "own_tokens",
        "places",
        "providers",
        "cache_id",
        "sources",
    )

    def __init__(
        self,
        token_verifier: TokenVerifier,
        places: CredentialExtractors,
        specs: tuple[JwtProvider, ...],
        *,
        own_tokens: bool = False,
    ) -> None:
        """Raises edgefast.auth.jwt.key_set.KeySetError, a ValueError, for keys that are none."""
        self.places = places
        #: All tokens come from the token endpoint, not from clients: the agent fetches an unknown key at once.
        self.own_tokens = own_tokens
        #: Of the request to the backend, lower case: what its client says in them is not believed.
        self.headers = frozenset(header for one in specs for header, _ in one.claim_headers)
        self.sources: dict[Provider, RemoteSet[Job]] = {}
        self.providers: tuple[Provider, ...] = tuple(
            self._provider(token_verifier, one) for one in specs
        )
        self.cache_id = token_verifier.new_cache_id()
        self.jobs: dict[bytes, Job] = {}  # by token, as long as they are under way
        self._token_verifier = token_verifier
        self._find = token_verifier.cache.find
        self._clock = token_verifier.clock

    def _provider(self, token_verifier: TokenVerifier, spec: JwtProvider) -> Provider:
        if spec.remote is None:
            return Provider(spec, TrustedKeys(read(spec.keys)))
        source = token_verifier.remote.of(spec.remote)
        provider = Provider(spec, source.keys)
        self.sources[provider] = source
        return provider

    def look(self, token: bytes) -> Outcome | None:
        """Return what came of a token that was verified before; None: `submit` it."""
        return self._find(self.cache_id, token, self._clock())

    def submit(
        self, token: bytes, callback: Callable[[Outcome], object], client: bytes = b""
    ) -> VerifyRequest:
        """Verify a token of a client. Its outcome is in the question at once, or the callback gets it, in a later turn of the loop."""
        return self._token_verifier.submit(self, token, callback, client)


def make_verifiers(
    token_verifier: TokenVerifier, spec: Jwt, *, own_tokens: bool = False
) -> tuple[Verifier, ...]:
    """Return the verifiers of a policy, in the order of its providers. Raises ValueError."""
    groups: dict[CredentialExtractors, list[JwtProvider]] = {}
    for one in spec.providers:
        groups.setdefault(one.places, []).append(one)
    return tuple(
        Verifier(token_verifier, places, tuple(group), own_tokens=own_tokens)
        for places, group in groups.items()
    )
