"""TokenCalls: a worker's requests for tokens of identity providers, which the agent sends.

In: the code of a callback, or the refresh token of a session. Out: tokens, or one word for the cause of
a failure, in a later turn of the loop. Each request has a deadline. Their number is bounded for a
worker, and for the policies of one namespace. If a namespace has that many, the browser address
with most of them gives one up for another address. The agent hears of requests that are over.
Must never: block its caller, or log a code or a token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.proxy.control.messages import CancelTokens, Tokens, TokensWanted

if TYPE_CHECKING:
    from edgefast.auth.oidc.login_client import TokenCall

__all__ = ["CALLS", "DEADLINE", "NAMESPACE_CALLS", "TokenCalls"]

log = logging.getLogger(__name__)

#: Requests of one worker that wait for tokens: of all policies; of the logins and logouts, and of the
#: refreshes, of one namespace each.
CALLS = 4096
NAMESPACE_CALLS = 256
#: Seconds: more than the agent's own deadline.
DEADLINE = 12.0

_DECODER: msgspec.msgpack.Decoder[TokenResponse] = msgspec.msgpack.Decoder(TokenResponse)
_Callback = Callable[[str, TokenResponse | None], object]


class _Share:
    """Requests of one namespace: its logins, or its refreshes."""

    def __init__(self) -> None:
        self._count = 0
        self._numbers: dict[bytes, list[int]] = {}  # by address of the browser

    def find_evicted(self, client: bytes) -> int | None:
        """Return the number of the request that gives its place up for one more; 0: none does; None: there is room."""
        if self._count < NAMESPACE_CALLS:
            return None
        largest = max(self._numbers.values(), key=len)
        return largest[-1] if len(largest) > len(self._numbers.get(client, ())) + 1 else 0

    def add(self, client: bytes, number: int) -> None:
        """Count a request."""
        self._numbers.setdefault(client, []).append(number)
        self._count += 1

    def remove(self, client: bytes, number: int) -> None:
        """Count a request no more."""
        self._numbers[client].remove(number)
        if not self._numbers[client]:
            del self._numbers[client]
        self._count -= 1


class _Call(NamedTuple):
    callback: _Callback
    timer: asyncio.TimerHandle
    share: _Share
    client: bytes


class TokenCalls:
    """Passes requests to the agent, and its answers back. `send` has a deadline of its own."""

    def __init__(self, send: Callable[[TokensWanted | CancelTokens], Awaitable[None]]) -> None:
        self._send = send
        self._number = 0
        self._waiting: dict[int, _Call] = {}
        self._shares: dict[tuple[str, bool], _Share] = {}
        self._sent: set[int] = set()  # of `_waiting`: the agent has them
        self._out: dict[int, TokensWanted | CancelTokens] = {}
        self._wakeup = asyncio.Event()

    def ask(
        self, unit: str, scope: bytes, client: bytes, call: TokenCall, callback: _Callback
    ) -> int:
        """Request tokens for a policy unit; returns the number of the request, 0 if too many wait.

        `scope`: of the unit's client (`client_scope`); `client`: the address of the browser.
        `callback` gets ("", tokens), or one of "rejected", "provider" and "busy" with None.
        """
        key = unit.rpartition("/")[0], call.state is not None or call.revokes
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = _Share()
        last = share.find_evicted(client)
        if last == 0 or (last is None and len(self._waiting) >= CALLS):
            return 0
        if last is not None:
            self._give_up(last)
        self._number += 1
        number = self._number
        share.add(client, number)
        timer = asyncio.get_running_loop().call_later(DEADLINE, self._settle, number, "provider")
        self._waiting[number] = _Call(callback, timer, share, client)
        self._out[number] = TokensWanted(
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
        self._wakeup.set()
        return number

    def cancel(self, number: int) -> None:
        """Call back no more: the request that waits is over."""
        if self._end(number) is not None:
            self._forget(number)

    def _give_up(self, number: int) -> None:
        """End a request for another one."""
        self._forget(number)
        self._settle(number, "busy")

    def _forget(self, number: int) -> None:
        """Cancel a request at the agent, if the agent has it."""
        self._out.pop(number, None)
        if number in self._sent:
            self._sent.discard(number)
            self._out[number] = CancelTokens(number)
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
            waiting.share.remove(waiting.client, number)
        return waiting

    async def run(self) -> None:
        """Send requests, until cancelled."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._out:
                number = next(iter(self._out))
                message = self._out.pop(number)
                if isinstance(message, TokensWanted):
                    self._sent.add(number)
                try:
                    await self._send(message)
                except TimeoutError:
                    self._settle(number, "provider")
