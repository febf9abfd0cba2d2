"""Token exchange: requests tokens of identity providers, for the workers.

In: the workers' requests, each with the code of a callback or the refresh token of a session; the
policies of the table; the providers' metadata (edgefast/proxy/jwks).
Out: one answer for each request, within DEADLINE. All workers' requests with the same refresh token
share one request to the provider, and its answer for KEPT seconds, because a provider may accept a
refresh token once. The requests of one provider are bounded, so a slow provider delays no other
one. Must never: log a code, a token or a secret, or retry: a code is valid once.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from edgefast import ir
from edgefast.auth.oidc.token_response import TokenError
from edgefast.diagnostics.redact import show_query
from edgefast.proxy.control.messages import Tokens, TokensWanted

if TYPE_CHECKING:
    from edgefast.auth.oidc.provider_metadata import ProviderMetadata
    from edgefast.ir.credentials import RemoteKeys
    from edgefast.proxy.jwks.key_source import SourceContext

__all__ = ["AT_ONCE", "DEADLINE", "KEPT", "WAITING", "TokenExchange"]

log = logging.getLogger(__name__)

#: Seconds of one exchange, with its wait for other ones.
DEADLINE = 10.0
#: Requests to one provider at a time, and those that wait for them.
AT_ONCE = 16
WAITING = 256
#: Seconds that the answer to a refresh token is given to late requests, and such answers at a time.
KEPT = 30.0
_MOST_KEPT = 1024
#: Seconds between two log lines about one provider.
_LOG_EVERY = 10.0

_Provider = tuple[str, str]  # RemoteKeys.uri, RemoteKeys.cluster
_Answer = Callable[[Tokens], None]


class _Traffic:
    """The requests to one provider."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(AT_ONCE)
        self.count = 0  # of those that wait or are in progress
        self.logged = float("-inf")


class _Exchange:
    """One request to a provider, and the requests of workers that wait for it."""

    def __init__(self, unit: str, spec: ir.Oidc, wanted: TokensWanted) -> None:
        self.unit = unit
        self.spec = spec
        self.wanted = wanted
        self.waiting: list[tuple[int, _Answer]] = []
        self.result: tuple[str, bytes] | None = None


class TokenExchange:
    """Requests tokens for the workers. `run` is a part of the agent's life."""

    def __init__(
        self,
        unit: Callable[[str], ir.Oidc | None],
        provider: Callable[[RemoteKeys], ProviderMetadata | None],
        means: Callable[[], SourceContext],
    ) -> None:
        """`unit`: the login of a policy unit of the table; `provider`: what is known of a provider."""
        self._unit = unit
        self._provider = provider
        self._means = means
        self._traffic: dict[_Provider, _Traffic] = {}
        self._shared: dict[bytes, _Exchange] = {}  # by refresh token
        self._kept = 0
        self._ready: list[tuple[_Exchange, _Traffic, bytes]] = []
        self._wakeup = asyncio.Event()

    def ask(self, wanted: TokensWanted, answer: _Answer) -> None:
        """Take a request of a worker; `answer` is called once, maybe at once."""
        spec = self._unit(wanted.unit)
        if spec is None:
            answer(Tokens(wanted.number, "provider"))
            return
        key = _digest(spec, wanted.refresh_token) if wanted.refresh_token else b""
        known = self._shared.get(key) if key else None
        if known is not None:
            if known.result is not None:
                answer(Tokens(wanted.number, *known.result))
            else:
                known.waiting.append((wanted.number, answer))
            return
        source = (spec.remote.uri, spec.remote.cluster)
        traffic = self._traffic.setdefault(source, _Traffic())
        if traffic.count >= AT_ONCE + WAITING:
            answer(Tokens(wanted.number, "busy"))
            return
        one = _Exchange(wanted.unit, spec, wanted)
        one.waiting.append((wanted.number, answer))
        traffic.count += 1
        if key:
            self._shared[key] = one
        self._ready.append((one, traffic, key))
        self._wakeup.set()

    async def run(self) -> None:
        """Do the exchanges, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wakeup.wait()
                self._wakeup.clear()
                ready, self._ready = self._ready, []
                for one, traffic, key in ready:
                    tasks.create_task(self._exchange(one, traffic, key))
                for source in [at for at, one in self._traffic.items() if not one.count]:
                    del self._traffic[source]

    async def _exchange(self, one: _Exchange, traffic: _Traffic, key: bytes) -> None:
        word, data = "provider", b""
        try:
            async with asyncio.timeout(DEADLINE), traffic.places:
                from edgefast.proxy.oidc.token_request import request_tokens

                metadata = self._provider(one.spec.remote)
                data = await request_tokens(one.spec, one.wanted, metadata, self._means())
            word = ""
        except TokenError as error:
            word = "rejected" if error.rejected else "provider"
            self._log(one, traffic, str(error))
        except TimeoutError:
            self._log(one, traffic, f"no answer within {DEADLINE:g} s")
        except Exception:
            log.exception("oidc: %s: tokens cannot be requested", one.unit)
        finally:
            traffic.count -= 1
            self._end(one, key, word, data)

    def _end(self, one: _Exchange, key: bytes, word: str, data: bytes) -> None:
        one.result = (word, data)
        waiting, one.waiting = one.waiting, []
        if key and word in ("", "rejected") and self._kept < _MOST_KEPT:
            self._kept += 1
            asyncio.get_running_loop().call_later(KEPT, self._forget, key)
        elif key:
            del self._shared[key]
        for number, answer in waiting:
            answer(Tokens(number, word, data))

    def _forget(self, key: bytes) -> None:
        self._kept -= 1
        del self._shared[key]

    def _log(self, one: _Exchange, traffic: _Traffic, problem: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - traffic.logged >= _LOG_EVERY:
            traffic.logged = now
            shown = show_query(one.spec.remote.issuer)
            log.warning("oidc: tokens of %s cannot be requested: %s", shown, problem)


def _digest(spec: ir.Oidc, token: str) -> bytes:
    """Return what all requests with one refresh token of a client have in common."""
    digest = hashlib.sha256()
    for part in (spec.remote.uri, spec.remote.cluster, spec.client_id, token):
        digest.update(len(part).to_bytes(8, "big") + part.encode())
    digest.update(hashlib.sha256(spec.client_secret).digest())
    return digest.digest()
