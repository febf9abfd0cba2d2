"""Remote keys: fetched keys of issuers, shared by all verifiers of a worker.

In: sets of keys from the agent, which fetches them (edgefast/proxy/jwks). Out: TrustedKeys that all
verifiers of one source share. It reports an unknown key of a token to the agent, at most once in
`ASK_EVERY` seconds and source. Jobs wait only while an answer is on its way. Must never fetch
anything itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec

from edgefast.auth.jwt.key_set import KeySet, KeySetError, read
from edgefast.auth.jwt.token_check import TrustedKeys
from edgefast.auth.oidc.provider_metadata import ProviderMetadata, read_provider
from edgefast.diagnostics.redact import show_query
from edgefast.ir.credentials import RemoteKeys

__all__ = ["ASK_EVERY", "RemoteSet", "RemoteSets", "SourceId"]

log = logging.getLogger(__name__)

#: Seconds between two questions for one source because of keys that are not known.
ASK_EVERY = 10.0
#: Seconds after which a question that nobody answered is none.
ANSWER = 10.0

#: What tells sources apart: RemoteKeys.uri, RemoteKeys.cluster, RemoteKeys.issuer.
SourceId = tuple[str, str, str]


class _Waits(Protocol):
    def on_keys(self) -> None: ...


Job = TypeVar("Job", bound=_Waits)


class RemoteSet(Generic[Job]):
    """The keys of one source."""

    def __init__(self, source: SourceId, now: float) -> None:
        self.source = source
        self.keys = TrustedKeys()
        #: Metadata of an identity provider; None: not fetched yet, or a plain key set.
        self.provider: ProviderMetadata | None = None
        self.waiting: dict[Job, None] = {}
        #: Whether the agent will say something: it knows of a source as soon as a table does.
        self.pending = True
        self._since = now
        self._ask_at = 0.0  # not before

    def is_awaited(
        self, ask: Callable[[SourceId], None], now: float, *, at_once: bool = False
    ) -> bool:
        """Tell whether other keys may be here soon; asks for them if it is time to. `now`: seconds of a steady clock; `at_once`: it is."""
        if self.pending and now - self._since < ANSWER:
            return True
        if now < self._ask_at and not at_once:
            return False
        self.pending, self._since, self._ask_at = True, now, now + ASK_EVERY
        ask(self.source)
        return True


class RemoteSets(Generic[Job]):
    """All of a worker's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sets: WeakValueDictionary[SourceId, RemoteSet[Job]] = WeakValueDictionary()
        self._told: dict[SourceId, RemoteSet[Job]] = {}  # whether a verifier has them or not

    def of(self, spec: RemoteKeys) -> RemoteSet[Job]:
        """Return the keys of a source, which may still be on their way."""
        return self._of((spec.uri, spec.cluster, spec.issuer))

    def _of(self, source: SourceId) -> RemoteSet[Job]:
        found = self._sets.get(source)
        if found is None:
            found = self._sets[source] = RemoteSet(source, self._clock())
        return found

    def use(self, source: SourceId, data: bytes) -> None:
        """Take what the agent says: keys as edgefast/auth/jwt/key_set.py writes them, b"" for none, and perhaps the same as before."""
        one = self._told[source] = self._of(source)
        try:
            provider, keys = read_provider(data)
            known = read(keys) if keys else None
            one.provider = provider
            self._take(one, known)
        except (KeySetError, msgspec.MsgspecError) as error:
            log.error(
                "jwt: keys of %s cannot be used; the previous keys stay in use: %s",
                show_query(source[0]),
                error,
            )
            self._answer(one)

    def forget(self, source: SourceId) -> None:
        """No table names this source any more. A verifier that is there all the same hears of it again, if one does."""
        one = self._told.pop(source, None)
        if one is not None:
            self._take(one, None)
            one.provider = None

    def _take(self, one: RemoteSet[Job], keys: KeySet | None) -> None:
        one.keys.replace(keys)
        self._answer(one)

    def _answer(self, one: RemoteSet[Job]) -> None:
        one.pending = False
        waiting, one.waiting = one.waiting, {}
        for job in waiting:
            job.on_keys()
