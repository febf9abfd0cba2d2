"""Evictions: checks whether servers may evict counters when their memory is full, at every new connection and periodically.

In: links.
Out: by address, the policy by which counters may be evicted. Counters have an expiry, so
`volatile-*` evicts them like `allkeys-*`. The safe settings are `noeviction` and no `maxmemory`.
`CONFIG GET` is sent first, then `INFO memory` if an ACL or a provider refuses that. A refused
command is not repeated, because it would fill the ACL log. An answer must arrive within the store's
timeout.
Source: Redis, "Key eviction".
Must never: prevent the use of a store, or keep any text of a server but the name of a policy.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from edgefast.rate_limit.link import Link

__all__ = ["Evictions"]

# A pattern, because Redis 6 takes one parameter only.
_CONFIG = b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$10\r\nmaxmemory*\r\n"
_INFO = b"*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n"
_NEVER = ("NOPERM", "ERR unknown")
_EVICTS = re.compile(rb"(?:allkeys|volatile)-[a-z]{1,16}")


class Evictions:
    """The servers of one worker's store."""

    EVERY = 30.0  # seconds between two questions on one connection

    def __init__(self, timeout: float, changed: Callable[[], object]) -> None:
        """`timeout`: seconds for an answer; `changed` is called when `policies` are others, from the loop."""
        self.policies: dict[str, str] = {}  # by address
        self._timeout = timeout
        self._changed = changed
        self._links: dict[str, Link] = {}
        self._refused: set[tuple[str, bytes]] = set()  # (address, question)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask again and again; needs the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def look(self, address: str, link: Link) -> None:
        """Ask a server; an answer that does not come in time, or a connection that ends, leaves what was known."""
        self._links[address] = link
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(self._timeout):
                policy = await self._ask(address, link)
                if policy is not None:
                    self._note(address, policy)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.EVERY)
            for address, link in tuple(self._links.items()):
                if link.alive:
                    await self.look(address, link)
                elif self._links.get(address) is link:  # it is not connected: nobody knows
                    del self._links[address]
                    self._note(address, "")

    def _note(self, address: str, policy: str) -> None:
        if policy == self.policies.get(address, ""):
            return
        if policy:
            self.policies[address] = policy
        else:
            del self.policies[address]
        self._changed()

    async def _ask(self, address: str, link: Link) -> str | None:
        """Return the policy by which counters may go; "" when they stay, None when nobody says."""
        for question, read in ((_CONFIG, _read_config), (_INFO, _read_info)):
            if (address, question) in self._refused:
                continue
            reply = await link.ask(question)
            if message := read(reply):
                return _evaluate(message)
            if _is_final(reply):
                self._refused.add((address, question))
        return None


def _is_final(reply: Any) -> bool:
    """Tell whether it would be the same another time; a server that is busy, or loading, says otherwise then."""
    return not isinstance(reply, Exception) or str(reply).startswith(_NEVER)


def _evaluate(message: dict[bytes, bytes]) -> str:
    policy = message.get(b"maxmemory-policy", b"")
    if message.get(b"maxmemory", b"0") == b"0" or not _EVICTS.fullmatch(policy):
        return ""
    return policy.decode()


def _read_config(reply: Any) -> dict[bytes, bytes]:
    if not isinstance(reply, list) or not all(isinstance(one, bytes) for one in reply):
        return {}
    return dict(zip(reply[::2], reply[1::2], strict=False))


def _read_info(reply: Any) -> dict[bytes, bytes]:
    return dict(_lines_of(reply)) if isinstance(reply, bytes) else {}


def _lines_of(reply: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in reply.splitlines():
        name, _, value = line.partition(b":")
        yield name.replace(b"_", b"-"), value
