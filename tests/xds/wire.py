"""A wire that can be cut: bytes go through between a client and a server, until they do not.

In: a server's port. Out: a port of its own. While `cut` is set everything that comes is swallowed, and nobody is told.
"""

from __future__ import annotations

import asyncio
import contextlib


class Wire:
    """`async with Wire(port) as wire: connect to wire.port`."""

    def __init__(self, server_port: int) -> None:
        self.cut = asyncio.Event()
        self.port = 0
        self._server_port = server_port
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Wire:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        to_server: asyncio.StreamWriter | None = None
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._carry(reader, to_server))
                ways.create_task(self._carry(from_server, writer))
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            for one in (writer, to_server):
                if one is not None:
                    one.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.cut.is_set():
                    continue
                writer.write(data)
                await writer.drain()
        writer.close()
