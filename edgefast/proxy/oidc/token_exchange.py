"""Token exchange: requests tokens of identity providers, for the workers.

In: the workers' requests, each with the code of a callback or the refresh token of a session; the
policies of the table; the providers' metadata (edgefast/proxy/jwks).
Out: one answer for each request, within DEADLINE. All workers' requests with the same refresh token
share one request to the provider, and its answer for KEPT seconds, because a provider may accept a
refresh token once. A login has one exchange: another code for it is refused without a request.
A logout revokes its refresh token in the turn of logins. Logins and refreshes of a provider each have AT_ONCE requests in progress, and others wait in turn of
their browsers' addresses, so neither a slow provider, a flood of logins nor one address stops the
others. Must never: log a code, a token or a secret, retry (a code is valid once), or send a token to
another client's provider than the one that the worker means.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from edgefast import ir
from edgefast.auth.oidc.cookie_names import client_scope
from edgefast.auth.oidc.scope import scope_of
from edgefast.auth.oidc.token_response import TokenError, TokenResponse
from edgefast.diagnostics.redact import show_query
from edgefast.proxy.control.messages import Tokens, TokensWanted

if TYPE_CHECKING:
    from edgefast.auth.oidc.provider_metadata import ProviderMetadata
    from edgefast.ir.credentials import RemoteKeys
    from edgefast.proxy.jwks.key_source import SourceContext

__all__ = ["AT_ONCE", "COUNTERS", "DEADLINE", "KEPT", "KEPT_BYTES", "WAITING", "TokenExchange"]

log = logging.getLogger(__name__)

#: Seconds of one exchange, with its wait for other ones.
DEADLINE = 10.0
#: Requests to one provider at a time, and those that wait for them; for logins and refreshes each.
AT_ONCE = 16
WAITING = 256
#: Seconds that the answer to a refresh token or a code is given to late requests.
KEPT = 30.0
#: Bytes of such answers, for logins and refreshes each. Beyond them an answer to a login is not kept,
#: and no refresh begins: without its answer a late request would use the refresh token again.
KEPT_BYTES = 64 * 1024 * 1024
#: Bytes of an answer beside its tokens.
_KEPT_EACH = 1024
#: Counters of results. At this number those of policies that are gone are dropped, and then new ones are not counted.
COUNTERS = 4096
#: Seconds between two log lines about one provider.
_LOG_EVERY = 10.0

_TOKENS: msgspec.msgpack.Decoder[TokenResponse] = msgspec.msgpack.Decoder(TokenResponse)

_Kind = tuple[str, str, str, bool]  # RemoteKeys.uri, cluster and issuer; True: logins
_Answer = Callable[[Tokens], None]
_Asker = tuple[object, int]  # the worker's life, and the number of its request


class _Exchange:
    """One request to a provider, and the requests of workers that wait for it."""

    def __init__(self, spec: ir.Oidc, wanted: TokensWanted, key: bytes, due: float) -> None:
        self.spec = spec
        self.wanted = wanted
        self.key = key
        self.due = due  # of the loop's clock
        self.waiting: dict[_Asker, _Answer] = {}
        self.result: tuple[str, bytes] | None = None

    @property
    def kind(self) -> str:
        """Return "login", "refresh" or "logout"."""
        if self.wanted.revokes:
            return "logout"
        return "refresh" if self.wanted.refresh_token else "login"

    @property
    def login(self) -> bool:
        """It is of a login or a logout, not of a session in use."""
        return self.kind != "refresh"


class _Traffic:
    """The requests to one provider: those in progress, and others in turn of their clients."""

    def __init__(self) -> None:
        self.running = 0
        self.waiting = 0
        self.logged = float("-inf")
        self._queues: dict[bytes, deque[_Exchange]] = {}  # by client, the next one first

    def enter(self, one: _Exchange) -> _Exchange | None:
        """Let one wait; returns the one that is dropped for it: itself, or the last one of the client with most."""
        mine = self._queues.get(one.wanted.client)
        if self.running + self.waiting >= AT_ONCE + WAITING:
            largest = max(self._queues.values(), key=len)
            if len(largest) <= (len(mine) if mine is not None else 0) + 1:
                return one
            last = largest[-1]
            self.remove(last)
            self._add(one)
            return last
        self._add(one)
        return None

    def _add(self, one: _Exchange) -> None:
        self._queues.setdefault(one.wanted.client, deque()).append(one)
        self.waiting += 1

    def take(self) -> _Exchange:
        """Return the next one; one waits."""
        client, queue = next(iter(self._queues.items()))
        one = queue.popleft()
        del self._queues[client]
        if queue:
            self._queues[client] = queue
        self.waiting -= 1
        return one

    def remove(self, one: _Exchange) -> bool:
        """Take one out that waits; False: it does not."""
        queue = self._queues.get(one.wanted.client, deque())
        if one not in queue:
            return False
        queue.remove(one)
        if not queue:
            del self._queues[one.wanted.client]
        self.waiting -= 1
        return True


class TokenExchange:
    """Requests tokens for the workers. `run` is a part of the agent's life."""

    def __init__(
        self,
        unit: Callable[[str], ir.Oidc | None],
        provider: Callable[[RemoteKeys], ProviderMetadata | None],
        means: Callable[[], SourceContext],
        on_id_token: Callable[[RemoteKeys, str], None] = lambda *_: None,
    ) -> None:
        """`unit`: the login of a policy unit of the table; `provider`: what is known of a provider;
        `on_id_token`: hears the key (kid) of each ID token, before the workers have the token."""
        self._unit = unit
        self._provider = provider
        self._means = means
        self._on_id_token = on_id_token
        self._traffic: dict[_Kind, _Traffic] = {}
        self._shared: dict[bytes, _Exchange] = {}  # by refresh token, and by login
        self._asked: dict[_Asker, _Exchange] = {}
        self._kept = {True: 0, False: 0}  # bytes; True: logins
        self._counts: dict[tuple[str, str, str], int] = {}  # by unit, kind, result
        self._wakeup = asyncio.Event()

    def ask(self, owner: object, wanted: TokensWanted, answer: _Answer) -> None:
        """Take a request of a worker; `answer` is called once, maybe at once. `owner`: the worker's life."""
        spec = self._unit(wanted.unit)
        if spec is None or client_scope(spec) != wanted.scope:
            answer(
                Tokens(wanted.number, "busy")
            )  # the policy changes: the next try has the new one
            return
        text = wanted.refresh_token or wanted.state
        kind = "refresh" if wanted.refresh_token else "login"
        key = scope_of(wanted.scope, "logout" if wanted.revokes else kind, text)
        one = self._shared.get(key)
        if one is not None and one.login and one.wanted.code != wanted.code:
            answer(Tokens(wanted.number, "rejected"))
            return
        if one is not None and one.result is not None:
            answer(Tokens(wanted.number, *one.result))
            return
        if one is None:
            one = self._begin(spec, wanted, key)
        if one is None:
            answer(Tokens(wanted.number, "busy"))
            return
        one.waiting[owner, wanted.number] = answer
        self._asked[owner, wanted.number] = one

    def cancel(self, owner: object, number: int) -> None:
        """A request is over: its exchange is dropped while it waits for its turn, and continues once it was sent."""
        one = self._asked.pop((owner, number), None)
        if one is None:
            return
        one.waiting.pop((owner, number), None)
        if not one.waiting and self._traffic[_kind(one)].remove(one):
            del self._shared[one.key]

    def _begin(self, spec: ir.Oidc, wanted: TokensWanted, key: bytes) -> _Exchange | None:
        """Let a request to a provider wait for its turn; None: too many wait."""
        one = _Exchange(spec, wanted, key, asyncio.get_running_loop().time() + DEADLINE)
        if not one.login and self._kept[False] >= KEPT_BYTES:
            self._count(one, "busy")
            return None
        traffic = self._traffic.setdefault(_kind(one), _Traffic())
        last = traffic.enter(one)
        if last is one:
            self._count(one, "busy")
            return None
        if last is not None:
            self._end(last, "busy", b"")
        self._shared[key] = one
        self._wakeup.set()
        return one

    async def run(self) -> None:
        """Do the exchanges, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wakeup.wait()
                self._wakeup.clear()
                for kind, traffic in list(self._traffic.items()):
                    while traffic.waiting and traffic.running < AT_ONCE:
                        one = traffic.take()
                        traffic.running += 1
                        tasks.create_task(self._exchange(one, traffic))
                    if not traffic.running:
                        del self._traffic[kind]

    async def _exchange(self, one: _Exchange, traffic: _Traffic) -> None:
        word, data = "provider", b""
        sent = False
        try:
            async with asyncio.timeout_at(one.due):
                from edgefast.proxy.oidc.token_request import request_tokens

                await asyncio.sleep(0)  # a request whose time is over is not sent
                sent = True
                metadata = self._provider(one.spec.remote)
                data = await request_tokens(one.spec, one.wanted, metadata, self._means())
            word = ""
            self._on_id_token(one.spec.remote, _read_kid(data))
        except TokenError as error:
            word = "rejected" if error.rejected else "provider"
            self._log(one, traffic, str(error))
        except TimeoutError:
            word = "provider" if sent else "busy"
            self._log(one, traffic, f"no answer within {DEADLINE:g} s")
        except Exception:
            log.exception("oidc: %s: tokens cannot be requested", one.wanted.unit)
        finally:
            traffic.running -= 1
            self._end(one, word, data)
            self._wakeup.set()

    def _end(self, one: _Exchange, word: str, data: bytes) -> None:
        """Answer all that wait, and keep the answer for late ones."""
        one.result = (word, data)
        self._count(one, word or "ok")
        size = _KEPT_EACH + len(data)
        keeps = word in ("", "rejected") or (one.login and word != "busy")
        if keeps and (not one.login or self._kept[True] + size <= KEPT_BYTES):
            self._kept[one.login] += size
            asyncio.get_running_loop().call_later(KEPT, self._forget, one, size)
        else:
            del self._shared[one.key]
        waiting, one.waiting = one.waiting, {}
        for asker, answer in waiting.items():
            self._asked.pop(asker, None)
            answer(Tokens(asker[1], word, data))

    def count_results(self) -> dict[tuple[str, str, str], int]:
        """Return how many requests had each result, by policy ("namespace/name"), kind and result."""
        self._drop_counts()
        return {
            (unit.partition("/")[2].partition("#")[0], kind, result): count
            for (unit, kind, result), count in self._counts.items()
        }

    def _count(self, one: _Exchange, result: str) -> None:
        key = (one.wanted.unit, one.kind, result)
        if key not in self._counts and len(self._counts) >= COUNTERS:
            self._drop_counts()
        if key in self._counts or len(self._counts) < COUNTERS:
            self._counts[key] = self._counts.get(key, 0) + 1

    def _drop_counts(self) -> None:
        """Drop the counters of policies that are gone."""
        units = {unit for unit, _, _ in self._counts}
        gone = {unit for unit in units if self._unit(unit) is None}
        self._counts = {key: count for key, count in self._counts.items() if key[0] not in gone}

    def _forget(self, one: _Exchange, size: int) -> None:
        self._kept[one.login] -= size
        del self._shared[one.key]

    def _log(self, one: _Exchange, traffic: _Traffic, problem: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - traffic.logged >= _LOG_EVERY:
            traffic.logged = now
            shown = show_query(one.spec.remote.issuer)
            log.warning("oidc: tokens of %s cannot be requested: %s", shown, problem)


def _read_kid(data: bytes) -> str:
    """Return the name of the key of the ID token in an answer, or "" without one."""
    from edgefast.auth.jwt.compact import Malformed, read_token  # loads cryptography

    try:
        return read_token(_TOKENS.decode(data).id_token.encode()).kid
    except (msgspec.MsgspecError, Malformed):
        return ""


def _kind(one: _Exchange) -> _Kind:
    remote = one.spec.remote
    return remote.uri, remote.cluster, remote.issuer, one.login
