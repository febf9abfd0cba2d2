"""A TLS client that asks like core.client.Client.

In: a port, a context, the name to ask for. Out: responses. Must never outlive its loop: uvloop waits for the transports of TLS when it is closed.
"""

from __future__ import annotations

import asyncio
import socket
import ssl

from core.client import DEADLINE, Client


class TlsClient(Client):
    """One TLS connection."""

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter

    @classmethod
    async def open(
        cls, port: int, context: ssl.SSLContext, name: str | None, source: str = "127.0.0.1"
    ) -> TlsClient:
        """Connect to a loopback port; without a name no SNI is sent and none is checked."""
        async with asyncio.timeout(DEADLINE):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname=name or "", local_addr=(source, 0)
            )
        client = cls(socket.socket())  # a placeholder: bytes go through the streams
        client._reader, client._writer = reader, writer
        return client

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        async with asyncio.timeout(DEADLINE):
            await self._writer.drain()

    async def receive(self) -> bytes:
        async with asyncio.timeout(DEADLINE):
            data = await self._reader.read(65536)
        self.received += len(data)
        return data

    def close(self) -> None:
        """End it without a farewell."""
        super().close()
        self._writer.transport.abort()
