"""An origin that does what a script says, byte for byte: for faults, delays and races.

A script is a function that gets a `Peer` (one accepted connection) and runs on a thread of its own; when it returns, the
connection is closed. In: connections from a proxy. Out: `connections`, with the bytes each of them received. Scripts wait
for events, never for time, wherever a test allows it. An exception in a script fails the test through `check()`.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import traceback
from collections.abc import Callable

from origin.message import Head, Malformed, Message, RequestReader, parse_head

_READ = 64 * 1024
_DEADLINE = 20.0


class Peer:
    """One connection, seen from the origin."""

    def __init__(self, sock: socket.socket, ordinal: int, stopping: threading.Event) -> None:
        self.sock = sock
        self.ordinal = ordinal  # 1 for the first connection
        self.received = bytearray()  # all bytes that came in
        self.ended = ""  # "eof", "reset" once the other side is gone
        self.stopping = stopping
        self._reader = RequestReader(ordinal)
        self._ready: list[Message] = []

    def read_some(self) -> bytes:
        """Next bytes, b"" at the end of the stream or after a reset."""
        try:
            data = self.sock.recv(_READ)
        except (ConnectionError, ssl.SSLError):
            self.ended = "reset"
            return b""
        if not data:
            self.ended = self.ended or "eof"
        self.received += data
        return data

    def read_request(self) -> Message | None:
        """Next complete request, None when the connection ended before it."""
        while not self._ready:
            data = self.read_some()
            if not data:
                return None
            self._ready += self._reader.feed(data)
        return self._ready.pop(0)

    def read_head(self) -> Head | None:
        """Head of the first request, without waiting for its body; the rest stays for `read_some`."""
        while True:
            head = parse_head(bytes(self.received))
            if head is not None:
                return head
            if not self.read_some():
                return None

    def read_to_end(self) -> bytes:
        """Read until the other side closes; returns all bytes of the connection."""
        while self.read_some():
            pass
        return bytes(self.received)

    def send(self, data: bytes) -> bool:
        """False when the other side is gone."""
        try:
            self.sock.sendall(data)
        except (ConnectionError, ssl.SSLError):
            self.ended = self.ended or "reset"
            return False
        return True

    def send_bytewise(self, data: bytes) -> bool:
        """One byte a packet."""
        return all(self.send(data[at : at + 1]) for at in range(len(data)))

    def reset(self) -> None:
        """Close with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close with FIN."""
        with contextlib.suppress(OSError):
            self.sock.close()

    def finish(self) -> None:
        """Send FIN and keep reading."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)


Script = Callable[[Peer], None]


class ScriptedOrigin:
    """Start with `with ScriptedOrigin(script) as origin`."""

    def __init__(
        self,
        script: Script,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        path: str | None = None,
        tls: ssl.SSLContext | None = None,
        receive_buffer: int = 0,
    ) -> None:
        if path is not None:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
        else:
            self._listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if receive_buffer:
                self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self._listener.bind((host, port))
        self._listener.listen(1024)
        self.host = host
        self.port = 0 if path is not None else int(self._listener.getsockname()[1])
        self.path = path
        self.connections: list[Peer] = []
        self.tls_failures: list[str] = []
        self._script = script
        self._tls = tls
        self._failures: list[str] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="scripted-origin", daemon=True)

    def __enter__(self) -> ScriptedOrigin:
        self._acceptor.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop()
        if kind is None:
            self.check()

    def stop(self) -> None:
        """Close everything and wait for the scripts to end."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(_DEADLINE)
        for peer in self.connections:
            with contextlib.suppress(OSError):
                peer.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_DEADLINE)

    def check(self) -> None:
        """Fail when a script failed."""
        assert not self._failures, "\n".join(self._failures)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(_DEADLINE)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._run, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, sock: socket.socket) -> None:
        if self._tls is not None:
            try:
                sock = self._tls.wrap_socket(sock, server_side=True)
            except OSError as error:
                self.tls_failures.append(str(error))
                sock.close()
                return
        with self._lock:
            peer = Peer(sock, len(self.connections) + 1, self._stopping)
            self.connections.append(peer)
        try:
            self._script(peer)
        except Malformed as fault:
            self._failures.append(f"the proxy sent {fault}")
        except TimeoutError:
            if not self._stopping.is_set():
                self._failures.append("a script waited too long:\n" + traceback.format_exc())
        except OSError:
            if not self._stopping.is_set():
                peer.ended = peer.ended or "reset"
        except Exception:
            self._failures.append(traceback.format_exc())
        finally:
            peer.close()


def serving(answer: Callable[[Message], bytes | None]) -> Script:
    """A well-behaved script: keep-alive, one answer per request. None closes the connection."""

    def script(peer: Peer) -> None:
        while (message := peer.read_request()) is not None:
            data = answer(message)
            if data is None or not peer.send(data):
                return

    return script
