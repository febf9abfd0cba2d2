"""Connector: connections to servers of the store. redis-py connects, encrypts, authenticates and selects; then the link takes over.

In: `ir.RateLimitStore` and addresses.
Out: a `Link` that has just counted on an unused key, which proves that the store can count in the
allowed time; or the reply to one query (sentinels, cluster maps). Raises Refused with the reason.
Callers bound the time. redis-py is imported for the first connection.
Must never: keep a connection that it did not return.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from edgefast import ir
from edgefast.rate_limit.error_reply import CODES, Refusal, Refused, read_refusal
from edgefast.rate_limit.eviction import Evictions
from edgefast.rate_limit.failure import explain_failure
from edgefast.rate_limit.link import Link
from edgefast.rate_limit.names import Names, split_address
from edgefast.rate_limit.redis_tls import make_context
from edgefast.rate_limit.script import ANSWER_SIZE, LOAD, SHA, pack_probe

if TYPE_CHECKING:
    from redis.asyncio.connection import Connection

    _Connect = Callable[..., Awaitable[Connection]]

__all__ = ["Connector"]


class Connector:
    """Makes connections by one configuration."""

    def __init__(self, config: ir.RateLimitStore, evictions: Evictions | None = None) -> None:
        """`evictions` gets every link that is made."""
        self._config = config
        self._names = Names()
        self._evictions = evictions
        self._client: tuple[_Connect, ssl.SSLContext | None] | None = None

    async def open(self, address: str, tag: int | None) -> Link:
        """Make a link; the server must count a key of `tag`. None: it may own no tag yet, the script is enough."""
        config = self._config
        link = Link(await self._connect(address, config.user, config.password, config.database))
        try:
            answer = await link.ask(LOAD)
            if answer != SHA:
                raise Refused(self._read(answer))
            if tag is not None:
                async with asyncio.timeout(config.timeout / 1000):
                    answer = await link.ask(pack_probe(tag))
                if not isinstance(answer, bytes) or len(answer) != ANSWER_SIZE:
                    raise Refused(self._read(answer))
            if self._evictions is not None:
                await self._evictions.look(address, link)
        except BaseException:
            link.close()
            raise
        return link

    async def ask(self, address: str, *words: str) -> Any:
        """Ask one question on a connection of its own."""
        return await self._ask(address, self._config.user, self._config.password, words)

    async def ask_sentinel(self, address: str, *words: str) -> Any:
        """Ask a sentinel, which may or may not want the user and password of the store."""
        try:
            return await self._ask(address, "", "", words)
        except Refused as error:
            if error.refusal.kind != "noauth":
                raise
            return await self.ask(address, *words)

    def close(self) -> None:
        """Forget look-ups under way."""
        self._names.close()

    @asynccontextmanager
    async def talk(
        self, address: str, user: str, password: str, database: int
    ) -> AsyncIterator[Connection]:
        """Lend a connection of redis-py's own, for what is no hot path; its exceptions are redis-py's."""
        connection = await self._connect(address, user, password, database)
        try:
            yield connection
        finally:
            await connection.disconnect(nowait=True)

    async def _ask(self, address: str, user: str, password: str, words: tuple[str, ...]) -> Any:
        async with self.talk(address, user, password, 0) as connection:
            try:
                await connection.send_command(*words)
                return await connection.read_response()
            except Exception as error:
                raise Refused(explain_failure(error)) from None

    def _read(self, answer: object) -> Refusal:
        refusal = read_refusal(str(answer)) if isinstance(answer, Exception) else _NONSENSE
        if refusal.then == "moved" and self._config.mode != "cluster":
            return CODES["CROSSSLOT"]
        return refusal

    async def _connect(self, address: str, user: str, password: str, database: int) -> Connection:
        host, port = split_address(address)
        failure: Exception | None = None
        try:
            if self._client is None:
                self._client = await asyncio.to_thread(_load, self._config)
            connect, context = self._client
            for ip in await self._names.resolve(host):
                try:
                    return await connect(host, ip, port, context, user, password, database)
                except Exception as error:
                    failure = failure or error
        except Exception as error:
            failure = error
        assert failure is not None
        raise Refused(explain_failure(failure)) from None


def _load(config: ir.RateLimitStore) -> tuple[_Connect, ssl.SSLContext | None]:
    """Run in a thread: importing redis-py takes 0.1 s, and reading the system's CAs 10 ms."""
    from edgefast.rate_limit.client import connect

    return connect, make_context(config) if config.tls else None


_NONSENSE = Refusal("error", "its answer is not an answer of Redis")
