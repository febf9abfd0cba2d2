"""Connections whose bytes come as a test cuts them: each piece is read before the next one is sent, and what the codecs write is read.

In: a world, bytes and how many of them come at once. Out: a `Pipe` for each connection, the client's and those that the engine makes to
backends. They are unix sockets: what is sent is there at once, and the kernel says when it has been read.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from pathlib import Path
from tempfile import TemporaryDirectory

from core.fleets import CLUSTER, PORT
from core.world import World
from edgefast import ir

_PATIENCE = 8  # turns for a piece of what is only offered


class Pipe:
    """The other end of one connection of the engine."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._sent = bytearray()
        self._ended = False

    async def feed(self, data: bytes, size: int = 0) -> None:
        """Give the engine these bytes, `size` at a time; 0: at once. It has read them all afterwards, or closed."""
        size = size or len(data)
        for start in range(0, len(data), size):
            try:
                self._sock.send(data[start : start + size])
            except ConnectionError:
                return
            while True:
                if not self._unread():
                    break
                await asyncio.sleep(0)

    async def offer(self, data: bytes, size: int = 0) -> None:
        """The same, but who does not read is not waited for; what there is no room for is lost."""
        size = size or len(data)
        for start in range(0, len(data), size):
            try:
                self._sock.send(data[start : start + size])
            except OSError:
                return
            for _ in range(_PATIENCE):
                if not self._unread():
                    break
                await asyncio.sleep(0)

    def _unread(self) -> bool:
        answer = fcntl.ioctl(self._sock, termios.TIOCOUTQ, bytes(4))
        return bool(struct.unpack("i", answer)[0])

    def finish(self) -> None:
        """No more bytes follow."""
        self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """The peer is gone."""
        self._sock.close()

    def _read(self) -> None:
        try:
            while part := self._sock.recv(65536):
                self._sent += part
            self._ended = True
        except BlockingIOError:
            pass
        except ConnectionError:
            self._ended = True

    @property
    def sent(self) -> bytes:
        """What the engine wrote and nobody has taken."""
        self._read()
        return bytes(self._sent)

    @property
    def ended(self) -> bool:
        """The engine has ended what it sends, or the connection."""
        self._read()
        return self._ended

    def take(self) -> bytes:
        """Read what was written since the last time."""
        data = self.sent
        self._sent.clear()
        return data


class PipeWorld(World):
    """A world of pipes."""

    def __init__(self) -> None:
        self.pipes: list[Pipe] = []
        self.dialled: list[Pipe] = []  # connections that the engine has made to the backend
        self._folder = TemporaryDirectory()
        self._front, self._back = self._listener("front"), self._listener("back")
        self._listens = False
        super().__init__()

    def _listener(self, name: str) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(Path(self._folder.name) / name))
        sock.listen(64)
        sock.setblocking(False)
        return sock

    @property
    def cluster_of_pipes(self) -> ir.Cluster:
        """The backend."""
        return ir.Cluster(
            name=CLUSTER, endpoints=(ir.Endpoint(address=self._back.getsockname(), port=0),)
        )

    async def connect(self) -> Pipe:
        """Connect a client."""
        if not self._listens:
            self._listens = True
            self._accepting.append(self.engine.listen(self._front.fileno(), PORT))
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(self._front.getsockname())
        self.pipes.append(Pipe(sock))
        return self.pipes[-1]

    async def dial(self, count: int = 1) -> Pipe:
        """Wait for the connection to the backend of this number, and for what is sent on it."""
        await self.until(lambda: self._accept() >= count and self.dialled[count - 1].sent)
        return self.dialled[count - 1]

    def _accept(self) -> int:
        try:
            while True:
                self.dialled.append(Pipe(self._back.accept()[0]))
        except BlockingIOError:
            return len(self.dialled)

    async def finish(self) -> None:
        """Clients leave; nothing may be left behind."""
        for pipe in self.pipes:
            pipe.close()
        await super().finish()

    def close(self) -> None:
        """Let go of sockets, too."""
        super().close()
        for pipe in [*self.pipes, *self.dialled]:
            pipe.close()
        self._front.close()
        self._back.close()
        self._folder.cleanup()
