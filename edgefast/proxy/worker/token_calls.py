"""TokenCalls: a worker's requests for tokens of identity providers, which the agent sends.

In: the code of a callback, or the refresh token of a session. Out: tokens, or one word for the cause of
a failure, in a later turn of the loop. Each request has a deadline. Their number is bounded for a
worker, for the policies of one namespace, and for the logins and logouts of one browser address, each of
which leaves room for others. The agent hears of requests that are over.
Must never: block its caller, or log a code or a token.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.proxy.control.messages import CancelTokens, Tokens, TokensWanted

if TYPE_CHECKING:
    from edgefast.auth.oidc.login_client import TokenCall

__all__ = ["CALLS", "CLIENT_CALLS", "DEADLINE", "NAMESPACE_CALLS", "TokenCalls"]

log = logging.getLogger(__name__)

#: Requests of one worker that wait for tokens: of all policies; of the logins and logouts, and of the refreshes,
#: of one namespace; of the logins and logouts of one address.
CALLS = 4096
NAMESPACE_CALLS = 256
CLIENT_CALLS = 32
#: Seconds: more than the agent's own deadline.
DEADLINE = 12.0

_DECODER: msgspec.msgpack.Decoder[TokenResponse] = msgspec.msgpack.Decoder(TokenResponse)
_Callback = Callable[[str, TokenResponse | None], object]
_Share = tuple[str, bool] | tuple[str, bytes]


class _Call(NamedTuple):
    callback: _Callback
    timer: asyncio.TimerHandle
    shares: tuple[_Share, ...]


class TokenCalls:
    """Passes requests to the agent, and its answers back. `send` has a deadline of its own."""

    def __init__(self, send: Callable[[TokensWanted | CancelTokens], Awaitable[None]]) -> None:
        self._send = send
        self._number = 0
        self._waiting: dict[int, _Call] = {}
        self._shares: Counter[_Share] = Counter()
        self._sent: set[int] = set()  # of `_waiting`: the agent has them
        self._out: deque[TokensWanted | CancelTokens] = deque()
        self._wakeup = asyncio.Event()

    def ask(
        self, unit: str, scope: bytes, client: bytes, call: TokenCall, callback: _Callback
    ) -> int:
        """Request tokens for a policy unit; returns the number of the request, 0 if too many wait.

        `scope`: of the unit's client (`client_scope`); `client`: the address of the browser.
        `callback` gets ("", tokens), or one of "rejected", "provider" and "busy" with None.
        """
        namespace = unit.rpartition("/")[0]
        login = call.state is not None or call.revokes
        shares: tuple[_Share, ...] = ((namespace, login),)
        if login:
            shares = (*shares, (namespace, client))
        full = self._shares[shares[0]] >= NAMESPACE_CALLS
        if (
            full
            or len(self._waiting) >= CALLS
            or self._shares[shares[-1]] >= CLIENT_CALLS
            and login
        ):
            return 0
        self._shares.update(shares)
        self._number += 1
        number = self._number
        timer = asyncio.get_running_loop().call_later(DEADLINE, self._settle, number, "provider")
        self._waiting[number] = _Call(callback, timer, shares)
        self._out.append(
            TokensWanted(
                number,
                unit,
                call.code,
                call.redirect_uri,
                call.verifier,
                call.refresh_token,
                scope,
                call.state.id if call.state is not None else "",
                client,
                call.revokes,
            )
        )
        self._wakeup.set()
        return number

    def cancel(self, number: int) -> None:
        """Call back no more: the request that waits is over."""
        if self._end(number) is not None and number in self._sent:
            self._sent.discard(number)
            self._out.append(CancelTokens(number))
            self._wakeup.set()

    def take(self, message: Tokens) -> None:
        """Take an answer of the agent."""
        response = None
        word = message.word
        if not word:
            try:
                response = _DECODER.decode(message.data)
            except msgspec.MsgspecError:
                word = "provider"
        self._settle(message.number, word, response)

    def _settle(self, number: int, word: str, response: TokenResponse | None = None) -> None:
        waiting = self._end(number)
        self._sent.discard(number)
        if waiting is None:
            return
        try:
            waiting.callback(word, response)
        except Exception:
            log.exception("oidc: request failed after its tokens came")

    def _end(self, number: int) -> _Call | None:
        """Take a request out of the count."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            waiting.timer.cancel()
            self._shares -= Counter(waiting.shares)
        return waiting

    async def run(self) -> None:
        """Send requests, until cancelled."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._out:
                message = self._out.popleft()
                number = message.number
                if isinstance(message, TokensWanted):
                    if number not in self._waiting:
                        continue
                    self._sent.add(number)
                try:
                    await self._send(message)
                except TimeoutError:
                    self._settle(number, "provider")
