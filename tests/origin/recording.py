"""An origin that keeps exactly what arrived, per connection, and answers at once.

One thread, one selector, no timeouts: it serves hundreds of connections and costs the machine little, so that the cases
under test can be many. In: connections from a proxy. Out: `take()`, everything since the last call. It must never repair
what it reads: bytes that are not a strict request are evidence and stay in the record as `Received.fault`.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from origin.answers import Answer, answer_target
from origin.message import Malformed, Message, RequestReader

_READ = 256 * 1024


@dataclass
class Received:
    """What came in since the last `take()`."""

    messages: list[Message] = field(default_factory=list)
    partials: list[bytes] = field(
        default_factory=list
    )  # cut off: the connection ended within a message
    open_partials: list[bytes] = field(
        default_factory=list
    )  # unfinished, and the connection is still open
    faults: list[str] = field(default_factory=list)  # bytes that are no strict HTTP request
    connections: int = 0  # accepted


class _Connection:
    __slots__ = ("out", "reader", "sock")

    def __init__(self, sock: socket.socket, ordinal: int) -> None:
        self.sock = sock
        self.reader = RequestReader(ordinal)
        self.out = bytearray()


class RecordingOrigin:
    """Start with `with RecordingOrigin() as origin`; `origin.port` is what a backend needs."""

    def __init__(
        self,
        answer: Answer = answer_target,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        path: str | None = None,
    ) -> None:
        if path is not None:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
        else:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._listener = socket.socket(family)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind((host, port))
        self._listener.listen(4096)
        self._listener.setblocking(False)
        self.host = host
        self.port = 0 if path is not None else int(self._listener.getsockname()[1])
        self.path = path
        self._answer = answer
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        self._lock = threading.Lock()
        self._received = Received()
        self._connections: set[_Connection] = set()
        self._accepted = 0
        self._turns = 0
        self._turned = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="recording-origin", daemon=True)

    def __enter__(self) -> RecordingOrigin:
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the listener and all connections."""
        if not self._stopping:
            self._stopping = True
            os.write(self._wake_write, b"x")
            self._thread.join(10)
            os.close(self._wake_read)
            os.close(self._wake_write)

    def take(self) -> Received:
        """Everything that arrived since the last call, in order of completion."""
        with self._lock:
            received, self._received = self._received, Received()
            received.open_partials = [
                bytes(item.reader.rest) for item in self._connections if item.reader.rest
            ]
            return received

    def turn(self) -> None:
        """Wait until all that had arrived at this moment has been read."""
        with self._turned:
            wanted = self._turns + 3  # this round may have begun before; one accepts, one reads
            while self._turns < wanted and not self._stopping:
                os.write(self._wake_write, b"x")
                self._turned.wait(10)

    @property
    def open_connections(self) -> int:
        """Connections that are open now."""
        with self._lock:
            return len(self._connections)

    @contextlib.contextmanager
    def answering(self, answer: Answer) -> Iterator[None]:
        """Answer differently for a while."""
        before, self._answer = self._answer, answer
        try:
            yield
        finally:
            self._answer = before

    # --- the serving thread -------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._stopping:
            for key, events in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fd == self._wake_read:
                    os.read(self._wake_read, 4096)
                else:
                    self._step(key.data, events)
            with self._turned:
                self._turns += 1
                self._turned.notify_all()
        for connection in list(self._connections):
            self._drop(connection, count_partial=False)
        self._selector.close()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._accepted += 1
                self._received.connections += 1
                connection = _Connection(sock, self._accepted)
                self._connections.add(connection)
            self._selector.register(sock, selectors.EVENT_READ, connection)

    def _step(self, connection: _Connection, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                data = connection.sock.recv(_READ)
                if not data:
                    self._drop(connection)
                    return
                self._take_in(connection, data)
            self._flush(connection)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)
        except Malformed as fault:
            with self._lock:
                self._received.faults.append(f"{fault} in {bytes(connection.reader.rest)!r}")
                connection.reader.rest.clear()
            self._drop(connection)

    def _take_in(self, connection: _Connection, data: bytes) -> None:
        with self._lock:
            messages = connection.reader.feed(data)
            self._received.messages += messages
        for message in messages:
            connection.out += self._answer(message) or b""

    def _flush(self, connection: _Connection) -> None:
        if connection.out:
            sent = connection.sock.send(connection.out)
            del connection.out[:sent]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.out else 0)
        if self._selector.get_key(connection.sock).events != wanted:
            self._selector.modify(connection.sock, wanted, connection)

    def _drop(self, connection: _Connection, *, count_partial: bool = True) -> None:
        self._selector.unregister(connection.sock)
        connection.sock.close()
        with self._lock:
            self._connections.discard(connection)
            if connection.reader.rest and count_partial:
                self._received.partials.append(bytes(connection.reader.rest))
