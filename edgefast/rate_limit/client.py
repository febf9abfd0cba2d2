"""Client: the part of redis-py that workers need: a connected, encrypted and authenticated connection.

In: a resolved address, a TLS context, user, password and database.
Out: redis-py's connection. The import of redis-py takes 10 MB and 0.1 s, which a worker without a
Redis store does not need. Only connector.py imports this module, on first use.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from redis.asyncio.connection import Connection

__all__ = ["connect"]


async def connect(
    host: str,
    ip: str,
    port: int,
    context: ssl.SSLContext | None,
    user: str,
    password: str,
    database: int,
) -> Connection:
    """Connect to `ip`; `host` is the name that the server's certificate must have."""
    connection = _Connection(
        ip,
        context,
        host=host,
        port=port,
        username=user or None,
        password=password or None,
        db=database,
        protocol=2,
        socket_timeout=None,  # whoever asks bounds the time of everything together
        socket_connect_timeout=None,
    )
    connect: Callable[[], Awaitable[None]] = connection.connect  # it has no types
    try:
        await connect()
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    return connection


class _Connection(Connection):
    def __init__(self, ip: str, context: ssl.SSLContext | None, **settings: Any) -> None:
        super().__init__(**settings)
        self._ip = ip
        self._context = context

    def _connection_arguments(self) -> Mapping[str, Any]:
        arguments: dict[str, Any] = {"host": self._ip, "port": self.port}
        if self._context is not None:
            arguments |= {"ssl": self._context, "server_hostname": self.host}
        return arguments
