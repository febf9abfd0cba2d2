"""Connections without sockets: the engine's codecs are fed bytes as a test cuts them, and what they write is read.

In: a world, bytes and how many of them come at once. Out: a `Pipe` for each connection, the client's and those that the engine makes to
backends. Must never touch a socket.
"""

from __future__ import annotations

import asyncio
from typing import Any

from core.fleets import PORT
from core.world import World


class Pipe(asyncio.Transport):
    """The transport of one connection of the engine. `sent` is what the engine wrote, `ended` how it ended it: "", eof, close, abort."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: Any) -> None:
        super().__init__()
        self.sent = bytearray()
        self.ended = ""
        self.reading = True
        self._loop = loop
        self._protocol = protocol
        protocol.connection_made(self)

    def feed(self, data: bytes, size: int = 0) -> None:
        """Give the engine these bytes, `size` at a time; 0: at once."""
        size = size or len(data)
        for start in range(0, len(data), size):
            if self.ended in ("close", "abort"):
                return
            piece = data[start : start + size]
            memoryview(self._protocol.get_buffer(-1))[: len(piece)] = piece
            self._protocol.buffer_updated(len(piece))

    def end(self) -> None:
        """The peer is gone."""
        if self.ended not in ("close", "abort"):
            self._lose("abort")

    def take(self) -> bytes:
        """Read what was written since the last time."""
        data = bytes(self.sent)
        self.sent.clear()
        return data

    # --- what a protocol calls --------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        ends = {"peername": ("192.0.2.7", 4711), "sockname": ("192.0.2.1", 80)}
        return ends.get(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = "eof"

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self._lose("close")

    def abort(self) -> None:
        self._lose("abort")

    def _lose(self, how: str) -> None:
        if self.ended not in ("close", "abort"):
            self.ended = how
            self._loop.call_soon(self._protocol.connection_lost, None)


class PipeLoop:
    """A loop whose connections are pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.dialled: list[Pipe] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def create_connection(
        self, factory: Any, host: str, port: int, **settings: Any
    ) -> tuple[Pipe, Any]:
        """As the loop's: the other end is a test."""
        protocol = factory()
        pipe = Pipe(self._loop, protocol)
        self.dialled.append(pipe)
        return pipe, protocol


class PipeWorld(World):
    """A world without sockets."""

    def __init__(self) -> None:
        self.pipes: list[Pipe] = []
        super().__init__(engine_loop=PipeLoop)

    @property
    def dialled(self) -> list[Pipe]:
        """The connections that the engine has made to backends, first one first."""
        loop: PipeLoop = self.engine.loop
        return loop.dialled

    def connect(self) -> Pipe:
        """Connect a client."""
        pipe = Pipe(self.loop, self.engine.factory(PORT, False)())
        self.pipes.append(pipe)
        return pipe

    async def dial(self, count: int = 1) -> Pipe:
        """Wait for the connection to a backend of this number."""
        await self.until(lambda: len(self.dialled) >= count and self.dialled[count - 1].sent)
        return self.dialled[count - 1]

    async def finish(self) -> None:
        """Clients leave; nothing may be left behind."""
        for pipe in self.pipes:
            pipe.end()
        await super().finish()
