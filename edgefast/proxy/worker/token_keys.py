"""TokenKeys: passes issuer keys from the agent to the token verifier.

In: pieces of keys from the agent; the verifier's report of a missing key.
Out: the token verifier with all known keys, created for the first policy with tokens (a worker
without one loads neither it nor its libraries); `KeysWanted` to the agent, one message for a source
at a time.
Must never: block its caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from edgefast.proxy.control.messages import Keys, KeysGone, KeysWanted
from edgefast.proxy.worker.agent_requests import AgentRequests

if TYPE_CHECKING:
    from edgefast.core.policy.token_verification import TokenVerifier

__all__ = ["TokenKeys"]

_Source = tuple[str, str, str]


class TokenKeys:
    """Passes issuers' keys from the agent to the worker's token verifier.

    `send` has a deadline of its own.
    """

    def __init__(self, send: Callable[[KeysWanted], Awaitable[None]]) -> None:
        self._requests_to_agent: AgentRequests[_Source] = AgentRequests(
            lambda source: send(KeysWanted(*source))
        )
        self._known: dict[_Source, bytes] = {}
        self._parts: dict[_Source, bytearray] = {}
        self._verifier: TokenVerifier | None = None

    def token_verifier(self) -> TokenVerifier:
        """Return the worker's token verifier."""
        if self._verifier is None:
            from edgefast.core.policy.token_verification import TokenVerifier

            self._verifier = TokenVerifier(asyncio.get_running_loop(), self._want)
            for source, data in self._known.items():
                self._verifier.remote.use(source, data)
        return self._verifier

    def take(self, message: Keys | KeysGone) -> None:
        """Do what the agent says."""
        source = (message.uri, message.cluster, message.issuer)
        if isinstance(message, KeysGone):
            self._known.pop(source, None)
            if self._verifier is not None:
                self._verifier.remote.forget(source)
            return
        parts = self._parts.setdefault(source, bytearray())
        parts += message.data
        if message.last:
            self._known[source] = bytes(self._parts.pop(source))
            if self._verifier is not None:
                self._verifier.remote.use(source, self._known[source])

    def _want(self, source: _Source) -> None:
        self._requests_to_agent.ask(source)

    async def run(self) -> None:
        """Pass on what the token verifier asks for, until cancelled."""
        await self._requests_to_agent.run()

    def close(self) -> None:
        """Let the token verifier's thread go."""
        if self._verifier is not None:
            self._verifier.close()
