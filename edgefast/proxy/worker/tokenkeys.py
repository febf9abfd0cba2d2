"""TokenKeys: between the agent, which fetches keys of issuers, and the desk that verifies tokens with them.

In: pieces of keys from the agent; the desk's word that a key is not there. Out: the desk, made when the first policy asks for tokens (a worker
without any has neither it nor its libraries), with all that is known; `KeysWanted` to the agent, one word for a source at a time.
Must never block its caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from edgefast.proxy.control.messages import Keys, KeysGone, KeysWanted
from edgefast.proxy.worker.wishes import Wishes

if TYPE_CHECKING:
    from edgefast.core.guard.tokendesk import TokenDesk

__all__ = ["TokenKeys"]

_Source = tuple[str, str]


class TokenKeys:
    """Passes issuers' keys from the agent to the worker's token verifier.

    `send` has a deadline of its own.
    """

    def __init__(self, send: Callable[[KeysWanted], Awaitable[None]]) -> None:
        self._wishes: Wishes[_Source] = Wishes(lambda source: send(KeysWanted(*source)))
        self._known: dict[_Source, bytes] = {}
        self._parts: dict[_Source, bytearray] = {}
        self._desk: TokenDesk | None = None

    def desk(self) -> TokenDesk:
        """Return the worker's desk of tokens."""
        if self._desk is None:
            from edgefast.core.guard.tokendesk import TokenDesk

            self._desk = TokenDesk(asyncio.get_running_loop(), self._want)
            for source, data in self._known.items():
                self._desk.remote.use(*source, data)
        return self._desk

    def take(self, message: Keys | KeysGone) -> None:
        """Do what the agent says."""
        source = (message.uri, message.cluster)
        if isinstance(message, KeysGone):
            self._known.pop(source, None)
            if self._desk is not None:
                self._desk.remote.forget(*source)
            return
        parts = self._parts.setdefault(source, bytearray())
        parts += message.data
        if message.last:
            self._known[source] = bytes(self._parts.pop(source))
            if self._desk is not None:
                self._desk.remote.use(*source, self._known[source])

    def _want(self, uri: str, cluster: str) -> None:
        self._wishes.ask((uri, cluster))

    async def run(self) -> None:
        """Pass on what the desk asks for, until cancelled."""
        await self._wishes.run()

    def close(self) -> None:
        """Let the desk's thread go."""
        if self._desk is not None:
            self._desk.close()
