"""Connections to servers of the store: redis-py connects, encrypts, authenticates and selects; the link then takes over.

In: `ir.RateLimitStore` and addresses. Out: a `Link` that has just counted on a key of nobody, so that whoever holds it knows
that the store does what it is there for, in the time it may take; or the reply to one question (sentinels, cluster maps).
Raises what redis-py, ssl and the loop raise, and Refused (failure.py explains all of it). Its callers bound the time.
Must never: keep a connection that it did not hand over.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio.connection import Connection
from redis.exceptions import AuthenticationError, RedisError

from edgefast import ir
from edgefast.ratelimit.link import Link
from edgefast.ratelimit.names import Names, split_address
from edgefast.ratelimit.redis_tls import make_context
from edgefast.ratelimit.refusal import Refusal, Refused, read_refusal
from edgefast.ratelimit.script import LOAD, SHA, pack_probe

__all__ = ["Connector"]


class _Connection(Connection):
    """redis-py's connection to an address that is resolved already, with a TLS context that is made already."""

    def __init__(self, ip: str, context: ssl.SSLContext | None, **settings: Any) -> None:
        super().__init__(**settings)
        self._ip = ip
        self._context = context

    def _connection_arguments(self) -> Mapping[str, Any]:
        arguments: dict[str, Any] = {"host": self._ip, "port": self.port}
        if self._context is not None:
            arguments |= {"ssl": self._context, "server_hostname": self.host}
        return arguments


class Connector:
    """Makes connections by one configuration."""

    def __init__(self, config: ir.RateLimitStore) -> None:
        self._config = config
        self._names = Names()
        self._context: ssl.SSLContext | None = None

    async def open(self, address: str, tag: int | None) -> Link:
        """Make a link; the server must count a key of `tag`. None: it may own no tag yet, the script is enough."""
        config = self._config
        link = Link(await self._connect(address, config.user, config.password, config.database))
        try:
            answer = await link.ask(LOAD)
            if answer != SHA:
                raise Refused(_read(answer))
            if tag is not None:
                async with asyncio.timeout(config.timeout / 1000):
                    answer = await link.ask(pack_probe(tag))
                if not isinstance(answer, list):
                    raise Refused(_read(answer))
        except BaseException:
            link.close()
            raise
        return link

    async def ask(self, address: str, *words: str) -> Any:
        """Ask one question on a connection of its own; an error reply raises redis-py's exception."""
        return await self._ask(address, self._config.user, self._config.password, words)

    async def ask_sentinel(self, address: str, *words: str) -> Any:
        """Ask a sentinel, which may or may not want the user and password of the store."""
        try:
            return await self._ask(address, "", "", words)
        except AuthenticationError:
            return await self.ask(address, *words)

    def close(self) -> None:
        """Forget look-ups under way."""
        self._names.close()

    @asynccontextmanager
    async def talk(
        self, address: str, user: str, password: str, database: int
    ) -> AsyncIterator[Connection]:
        """Lend a connection of redis-py's own, for what is no hot path."""
        connection = await self._connect(address, user, password, database)
        try:
            yield connection
        finally:
            await connection.disconnect(nowait=True)

    async def _ask(self, address: str, user: str, password: str, words: tuple[str, ...]) -> Any:
        async with self.talk(address, user, password, 0) as connection:
            await connection.send_command(*words)
            return await connection.read_response()

    async def _connect(self, address: str, user: str, password: str, database: int) -> Connection:
        host, port = split_address(address)
        if self._config.tls and self._context is None:
            self._context = make_context(self._config)
        failure: Exception | None = None
        for ip in await self._names.resolve(host):
            connection = _Connection(
                ip,
                self._context,
                host=host,
                port=port,
                username=user or None,
                password=password or None,
                db=database,
                protocol=2,
                socket_timeout=None,
                socket_connect_timeout=None,
            )
            connect: Callable[[], Awaitable[None]] = connection.connect  # it has no types
            try:
                await connect()
            except (OSError, RedisError) as error:
                failure = failure or error
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            else:
                return connection
        assert failure is not None
        raise failure


def _read(answer: object) -> Refusal:
    return read_refusal(str(answer)) if isinstance(answer, Exception) else _NONSENSE


_NONSENSE = Refusal("error", "it does not answer as Redis does")
