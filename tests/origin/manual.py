"""An origin without a thread: the test itself accepts, reads and writes, so that it decides the order of every byte.

In: connections from a proxy's pool. Out: `expect(n)` waits until n complete requests are there and returns them by target
as `Turn`s; the test then sends the pieces of its answers, ends or resets. It must never answer by itself.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time

from origin.message import Message, RequestReader

_READ = 256 * 1024


class Turn:
    """A request that waits for its answer, and the connection it came on."""

    def __init__(self, origin: ManualOrigin, sock: socket.socket, message: Message) -> None:
        self.message = message
        self.sock = sock
        self._origin = origin

    def send(self, data: bytes) -> bool:
        """False when the proxy has closed the connection."""
        try:
            self.sock.sendall(data)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """FIN."""
        self._origin.forget(self.sock)
        self.sock.close()

    def reset(self) -> None:
        """RST."""
        self._origin.forget(self.sock)
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def dropped_by_proxy(self, deadline: float = 20.0) -> bool:
        """True once the proxy has closed or reset the connection (waits up to `deadline` seconds)."""
        self.sock.settimeout(deadline)
        try:
            while self.sock.recv(_READ):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True


class ManualOrigin:
    """`port` is open at once; call `close` at the end."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._listener = socket.socket()
        self._listener.bind((host, 0))
        self._listener.listen(4096)
        self._listener.setblocking(False)
        self.host = host
        self.port = int(self._listener.getsockname()[1])
        self.accepted = 0
        self._readers: dict[socket.socket, RequestReader] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def __enter__(self) -> ManualOrigin:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the listener and every connection."""
        for sock in list(self._readers):
            self.forget(sock)
            sock.close()
        self._selector.close()
        self._listener.close()

    def forget(self, sock: socket.socket) -> None:
        """Stop reading from a connection."""
        if self._readers.pop(sock, None) is not None:
            self._selector.unregister(sock)

    def drop_idle(self) -> None:
        """Close all connections, so that the next requests come on fresh ones."""
        for sock in list(self._readers):
            self.forget(sock)
            sock.close()

    def expect(self, count: int, deadline: float = 30.0) -> dict[bytes, Turn]:
        """Wait for `count` complete requests with different targets; fewer when the deadline (seconds) has passed."""
        turns: dict[bytes, Turn] = {}
        end = time.monotonic() + deadline
        while len(turns) < count and (left := end - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if sock is self._listener:
                    self._accept()
                    continue
                for message in self._read(sock):
                    turns[message.target] = Turn(self, sock, message)
        return turns

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                sock.settimeout(30)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.accepted += 1
                self._readers[sock] = RequestReader(self.accepted)
                self._selector.register(sock, selectors.EVENT_READ)

    def _read(self, sock: socket.socket) -> list[Message]:
        try:
            data = sock.recv(_READ)
        except OSError:
            data = b""
        if not data:
            self.forget(sock)
            sock.close()
            return []
        return self._readers[sock].feed(data)
