"""Cable: a TCP relay between a client and the API server, which can be cut or frozen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

_CHUNK = 64 * 1024


class Cable:
    """Use `laid`; `kubeconfig` makes a copy of one that leads through it."""

    def __init__(self, host: str, port: int) -> None:
        self.made = 0  # connections so far
        self.served = 0  # of them, those that are over
        self.over = asyncio.Event()  # one more is over
        self._target = (host, port)
        self._passing = asyncio.Event()
        self._passing.set()
        self._broken = False
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    def cut(self) -> None:
        """Reset what is connected; refuse what comes."""
        self._broken = True
        for one in self._writers:
            _reset(one)

    def freeze(self) -> None:
        """Pass nothing on, and say nothing."""
        self._passing.clear()

    def mend(self) -> None:
        """Work again; frozen connections are reset, as when the machine is back and knows nothing of them."""
        self._broken = False
        if not self._passing.is_set():
            for one in self._writers:
                _reset(one)
        self._passing.set()

    def kubeconfig(self, original: Path) -> Path:
        """Return a kubeconfig that reaches the same server through here."""
        content: dict[str, Any] = json.loads(original.read_text())
        for one in content["clusters"]:
            one["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        copy = original.with_name(f"{original.name}.{self.port}")
        copy.write_text(json.dumps(content))
        return copy

    async def on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.made += 1
        self._writers.add(writer)
        try:
            if self._broken:
                _reset(writer)
                return
            there, back = await asyncio.open_connection(*self._target)
            self._writers.add(back)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pass(reader, back))
                    group.create_task(self._pass(there, writer))
            finally:
                self._writers.discard(back)
                back.close()
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            self.served += 1
            self.over.set()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK):
            await self._passing.wait()
            writer.write(chunk)
            await writer.drain()
        raise ConnectionResetError


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextlib.asynccontextmanager
async def laid(host: str, port: int) -> AsyncIterator[Cable]:
    """Lay a cable to a server, and take it away at the end."""
    cable = Cable(host, port)
    server = await asyncio.start_server(cable.on_client, "127.0.0.1", 0)
    cable.port = server.sockets[0].getsockname()[1]
    try:
        yield cable
    finally:
        server.close()
        cable.mend()
        cable.cut()
        async with asyncio.timeout(10):
            while cable.served < cable.made:
                cable.over.clear()
                await cable.over.wait()
