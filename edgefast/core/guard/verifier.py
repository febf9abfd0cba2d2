"""Verifier: the tokens that a policy asks for, from one set of places in requests.

In: ir.Jwt, tokens as requests carry them. Out: what came of a token that is known, in about a microsecond; of any other an outcome at once or
later (tokendesk.py). A policy whose providers look in different places has a verifier for each. Must never: let a provider's
token in from a place that this provider does not look at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from edgefast.ircredential import CredentialPlaces, Jwt, JwtProvider
from edgefast.keyset import read
from edgefast.tokens.outcome import Outcome
from edgefast.tokens.trust import Provider, TrustedKeys

if TYPE_CHECKING:
    from edgefast.core.guard.remotekeys import RemoteSet
    from edgefast.core.guard.tokendesk import Job, Question, TokenDesk

__all__ = ["Verifier", "make_verifiers"]


class Verifier:
    """Verifies the tokens that a policy requires, at one set of places in requests."""

    __slots__ = (
        "_clock",
        "_desk",
        "_find",
        "headers",
        "jobs",
        "places",
        "providers",
        "shelf",
        "sources",
    )

    def __init__(
        self, desk: TokenDesk, places: CredentialPlaces, specs: tuple[JwtProvider, ...]
    ) -> None:
        """Raises edgefast.keyset.KeySetError, a ValueError, for keys that are none."""
        self.places = places
        #: Of the request to the backend, lower case: what its client says in them is not believed.
        self.headers = frozenset(header for one in specs for header, _ in one.claim_headers)
        self.sources: dict[Provider, RemoteSet[Job]] = {}
        self.providers: tuple[Provider, ...] = tuple(self._provider(desk, one) for one in specs)
        self.shelf = desk.new_shelf()
        self.jobs: dict[bytes, Job] = {}  # by token, as long as they are under way
        self._desk = desk
        self._find = desk.cache.find
        self._clock = desk.clock

    def _provider(self, desk: TokenDesk, spec: JwtProvider) -> Provider:
        if spec.remote is None:
            return Provider(spec, TrustedKeys(read(spec.keys)))
        source = desk.remote.of(spec.remote)
        provider = Provider(spec, source.keys)
        self.sources[provider] = source
        return provider

    def look(self, token: bytes) -> Outcome | None:
        """Return what came of a token that was verified before; None: `submit` it."""
        return self._find(self.shelf, token, self._clock())

    def submit(
        self, token: bytes, callback: Callable[[Outcome], object], client: bytes = b""
    ) -> Question:
        """Verify a token of a client. Its outcome is in the question at once, or the callback gets it, in a later turn of the loop."""
        return self._desk.submit(self, token, callback, client)


def make_verifiers(desk: TokenDesk, spec: Jwt) -> tuple[Verifier, ...]:
    """Return the verifiers of a policy, in the order of its providers. Raises ValueError."""
    groups: dict[CredentialPlaces, list[JwtProvider]] = {}
    for one in spec.providers:
        groups.setdefault(one.places, []).append(one)
    return tuple(Verifier(desk, places, tuple(group)) for places, group in groups.items())
