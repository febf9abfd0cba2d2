"""Login flow: logins and sessions of one policy unit with `oidc`, around its client (edgefast/auth/oidc).

In: requests without a known session, tokens of the provider (a worker gets them from the agent).
Out: a decision at once, or a PendingLogin that calls back in a later turn of the loop. A session that
was opened is kept in the token cache, under the text of its cookies.

    decide      Admission, Reply, or TokenCall -> the agent
    on_tokens   no tokens: decide without them; an ID token -> the token verifier
    on_checked  decide with its claims

Must never: admit a request before its ID token is verified, or keep a token of a request that ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from edgefast.auth.jwt.outcome import Outcome
from edgefast.auth.jwt.token_check import TrustedKey
from edgefast.auth.oidc.login_client import Admission, LoginClient, LoginRequest, Reply, TokenCall
from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.core.policy.login_services import LoginServices
from edgefast.core.policy.token_requirements import make_verifiers
from edgefast.ir.credentials import Jwt, JwtProvider
from edgefast.ir.oidc import Oidc

if TYPE_CHECKING:
    from edgefast.auth.jwt.key_set import Key
    from edgefast.auth.oidc.provider_metadata import ProviderMetadata
    from edgefast.core.policy.token_verification import Job, TokenVerifier, VerifyRequest

__all__ = ["PROVIDER", "Decision", "LoginFlow", "PendingLogin", "ProviderWait"]

log = logging.getLogger(__name__)

#: JwtProvider.name of the provider of a login, as rules and logs have it.
PROVIDER = "oidc"
#: Navigations of one policy that wait for the metadata of its provider, and the seconds that each may.
WAITING = 256
PATIENCE = 2.0
#: Sessions are proven by their encryption; keys of providers come and go without them.
_KEY = TrustedKey(cast("Key", None))


class Decision(NamedTuple):
    """What becomes of a request."""

    outcome: Outcome | None  # of its session; None: it is answered
    reply: Reply | None
    cookies: tuple[str, ...]  # Set-Cookie of the answer


class PendingLogin:
    """A request that waits for tokens."""

    __slots__ = ("_callback", "_flow", "call", "number", "question", "request", "client")

    def __init__(
        self,
        flow: LoginFlow,
        request: LoginRequest,
        call: TokenCall,
        callback: Callable[[Decision], object],
        client: bytes,
    ) -> None:
        self._flow = flow
        self.request = request
        self.call = call
        self.client = client
        self._callback: Callable[[Decision], object] | None = callback
        self.number = 0
        self.question: VerifyRequest | None = None

    def cancel(self) -> None:
        """The request is over: the callback is not called."""
        self._callback = None
        self._flow.tokens.cancel(self.number)
        if self.question is not None:
            self.question.cancel()
            self.question = None

    def on_tokens(self, word: str, response: TokenResponse | None) -> None:
        """Take the answer of the agent."""
        if self._callback is not None:
            self._flow.on_tokens(self, word, response)

    def settle(self, decision: Decision) -> None:
        """End the wait."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(decision)


class ProviderWait:
    """A navigation or callback that waits for the metadata of its provider, as after a start."""

    __slots__ = ("_callback", "_client", "_flow", "_next", "_request", "_timer")

    def __init__(
        self,
        flow: LoginFlow,
        request: LoginRequest,
        callback: Callable[[Decision], object],
        client: bytes,
    ) -> None:
        self._flow = flow
        self._request = request
        self._client = client
        self._next: PendingLogin | ProviderWait | None = None  # it waits for tokens now
        self._callback: Callable[[Decision], object] | None = callback
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._go_on)
        flow.awaited += 1
        flow.wait_for_provider(self)

    def cancel(self) -> None:
        """The request is over: the callback is not called."""
        self._end()
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def on_keys(self) -> None:
        """Something of the provider came."""
        if self._flow.knows_provider():
            self._go_on()
        else:
            self._flow.wait_for_provider(self)

    def _end(self) -> Callable[[Decision], object] | None:
        """End the wait; returns the callback, once."""
        callback, self._callback = self._callback, None
        if callback is not None:
            self._timer.cancel()
            self._flow.awaited -= 1
            self._flow.forget_wait(self)
        return callback

    def _go_on(self) -> None:
        """Decide with what is known of the provider."""
        callback = self._end()
        if callback is None:
            return
        found = self._flow.decide(self._request, callback, self._client, late=True)
        if isinstance(found, Decision):
            callback(found)
        else:
            self._next = found


class LoginFlow:
    """Logins and sessions of one policy unit."""

    def __init__(
        self, unit: str, spec: Oidc, services: LoginServices, verifier: TokenVerifier
    ) -> None:
        provider = JwtProvider(
            name=PROVIDER,
            issuer=spec.remote.issuer,
            audiences=(spec.client_id,),
            remote=spec.remote,
        )
        (self._verifier,) = make_verifiers(verifier, Jwt(providers=(provider,)), own_tokens=True)
        self.client = LoginClient(spec, services.ring, os.urandom)
        self.tokens = services.tokens
        self.cache = verifier.cache
        self.cache_id = verifier.new_cache_id()
        self.clock = services.clock
        self._unit = unit
        self._issuer = spec.remote.issuer
        self._source = verifier.remote.of(spec.remote)
        self.awaited = 0  # requests that wait for the provider's metadata

    def wait_for_provider(self, one: ProviderWait) -> None:
        """Tell `one` when something of the provider comes."""
        self._source.waiting[cast("Job", one)] = None

    def forget_wait(self, one: ProviderWait) -> None:
        """Tell it no more."""
        self._source.waiting.pop(cast("Job", one), None)

    def knows_provider(self) -> bool:
        """Tell whether the metadata of the provider is known."""
        return self._provider() is not None

    def _provider(self) -> ProviderMetadata | None:
        """Return what is known of the provider."""
        found = self._source.provider
        return found if found is not None and found.issuer == self._issuer else None

    def decide(
        self,
        request: LoginRequest,
        callback: Callable[[Decision], object],
        client: bytes,
        *,
        late: bool = False,
    ) -> Decision | PendingLogin | ProviderWait:
        """Decide about a request, or call back. `client`: its address; `late`: it waited for the provider."""
        now = self.clock()
        found = self.client.decide(request, self._provider(), now)
        wants = isinstance(found, Reply) and found.word == "provider"
        if wants and not late and self.awaited < WAITING:
            return ProviderWait(self, request, callback, client)
        if isinstance(found, Reply) and found.revocation is not None:  # not sent if too many wait
            scope = self.client.scope
            self.tokens.ask(self._unit, scope, client, found.revocation, lambda *_: None)
        if not isinstance(found, TokenCall):
            return self._conclude(request, found, now)
        pending = PendingLogin(self, request, found, callback, client)
        scope = self.client.scope
        pending.number = self.tokens.ask(self._unit, scope, client, found, pending.on_tokens)
        if not pending.number:
            return self._fail(pending, "busy", sent=False)
        return pending

    def on_tokens(self, one: PendingLogin, word: str, response: TokenResponse | None) -> None:
        """Go on with tokens, or without."""
        try:
            self._on_tokens(one, word, response)
        except Exception:
            self._on_error(one)

    def _on_tokens(self, one: PendingLogin, word: str, response: TokenResponse | None) -> None:
        if response is None:
            one.settle(self._fail(one, word, sent=word != "busy"))
        elif not response.id_token:
            one.settle(self._finish(one, response, None))
        else:
            token = response.id_token.encode()
            known = self._verifier.look(token)
            if known is not None:
                self._on_checked(one, response, known)
                return
            one.question = self._verifier.submit(
                token, lambda outcome: self._on_late_check(one, response, outcome), one.client
            )
            if one.question.outcome is not None:
                self._on_checked(one, response, one.question.outcome)

    def _on_late_check(self, one: PendingLogin, response: TokenResponse, outcome: Outcome) -> None:
        try:
            self._on_checked(one, response, outcome)
        except Exception:
            self._on_error(one)

    def _on_error(self, one: PendingLogin) -> None:
        """End the wait of a request that cannot be decided."""
        log.exception("oidc: %s: a request failed after its tokens came", self._unit)
        one.settle(Decision(None, Reply(500, "error"), ()))

    def _on_checked(self, one: PendingLogin, response: TokenResponse, outcome: Outcome) -> None:
        one.question = None
        if outcome.status or outcome.claims is None:
            one.settle(self._fail(one, outcome.word, sent=True))
        else:
            one.settle(self._finish(one, response, outcome))

    def _finish(
        self, one: PendingLogin, response: TokenResponse, outcome: Outcome | None
    ) -> Decision:
        now = self.clock()
        claims = outcome.claims if outcome is not None else None
        found = self.client.finish(one.request, one.call, response, claims, now)
        return self._conclude(one.request, found, now)

    def _fail(self, one: PendingLogin, word: str, *, sent: bool) -> Decision:
        now = self.clock()
        rejected = word == "rejected"
        found = self.client.on_failure(
            one.request,
            one.call,
            self._provider(),
            now,
            rejected=rejected,
            word=word,
            sent=sent,
        )
        return self._conclude(one.request, found, now)

    def _conclude(self, request: LoginRequest, found: Admission | Reply, now: float) -> Decision:
        if isinstance(found, Reply):
            return Decision(None, found, found.cookies)
        outcome = Outcome("", PROVIDER, found.claims, found.lines, found.until, _KEY)
        if found.until > now:
            text = self.client.chunks(request.cookies).encode()
            self.cache.keep(self.cache_id, text, outcome, now)
        return Decision(outcome, None, found.cookies)
