"""TokenCalls: a worker's requests for tokens of identity providers, which the agent sends.

In: the code of a callback, or the refresh token of a session. Out: tokens, or one word for the cause of
a failure, in a later turn of the loop. Each request has a deadline, and their number is bounded.
Must never: block its caller, or log a code or a token.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.proxy.control.messages import Tokens, TokensWanted

if TYPE_CHECKING:
    from edgefast.auth.oidc.login_client import TokenCall

__all__ = ["CALLS", "DEADLINE", "TokenCalls"]

log = logging.getLogger(__name__)

#: Requests of one worker that wait for tokens.
CALLS = 512
#: Seconds: more than the agent's own deadline.
DEADLINE = 12.0

_DECODER: msgspec.msgpack.Decoder[TokenResponse] = msgspec.msgpack.Decoder(TokenResponse)
_Callback = Callable[[str, TokenResponse | None], object]


class TokenCalls:
    """Passes requests to the agent, and its answers back. `send` has a deadline of its own."""

    def __init__(self, send: Callable[[TokensWanted], Awaitable[None]]) -> None:
        self._send = send
        self._number = 0
        self._waiting: dict[int, tuple[_Callback, asyncio.TimerHandle]] = {}
        self._out: deque[TokensWanted] = deque()
        self._wakeup = asyncio.Event()

    def ask(self, unit: str, call: TokenCall, callback: _Callback) -> int:
        """Request tokens for a policy unit; returns the number of the request, 0 if too many wait.

        `callback` gets ("", tokens), or one of "rejected", "provider" and "busy" with None.
        """
        if len(self._waiting) >= CALLS:
            return 0
        self._number += 1
        number = self._number
        timer = asyncio.get_running_loop().call_later(DEADLINE, self._settle, number, "provider")
        self._waiting[number] = (callback, timer)
        self._out.append(
            TokensWanted(
                number, unit, call.code, call.redirect_uri, call.verifier, call.refresh_token
            )
        )
        self._wakeup.set()
        return number

    def cancel(self, number: int) -> None:
        """Call back no more: the request that waits is over."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            waiting[1].cancel()

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
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return
        waiting[1].cancel()
        try:
            waiting[0](word, response)
        except Exception:
            log.exception("oidc: request failed after its tokens came")

    async def run(self) -> None:
        """Send requests, until cancelled."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._out:
                wanted = self._out.popleft()
                if wanted.number not in self._waiting:
                    continue
                try:
                    await self._send(wanted)
                except TimeoutError:
                    self._settle(wanted.number, "provider")
