"""A proxy with one HTTPS port that takes any name, beside its origin; and how hostile bytes fare there.

In: settings of its EdgeProxy. Out: connections as the test wants them: TLS by Python's ssl, or nothing but bytes.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority, Pair
from wire.harness.client import DEADLINE, Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

NAME = "a.test"
T = TypeVar("T")


class TlsPort(Gateway):
    """Use as a context manager; `origin` runs already."""

    def __init__(
        self,
        origin: RecordingOrigin,
        *,
        http: Mapping[str, Any] | None = None,
        client_address: Mapping[str, Any] | None = None,
        prefix: Sequence[str] = (),
        workers: int = 1,
    ) -> None:
        self.authority = Authority()
        self.pair: Pair = self.authority.issue([NAME])
        self.port = free_port()
        self._origin = origin.port
        self._http = dict(http or {})
        self._settings = {"clientAddress": dict(client_address)} if client_address else {}
        super().__init__(self.build(), prefix=prefix, workers=workers)

    def build(self) -> list[make.Object]:
        """All objects with the current certificate."""
        made = []
        if self._http or self._settings:
            made = [make.edge_proxy("settings", self._http, **self._settings)]
        listener = make.listener(self.port, "tls", "", ["pair"])
        return [
            *made,
            make.gateway("web", [listener], "settings" if made else ""),
            make.route("all", [make.rule("origin")]),
            make.tls_secret("pair", self.pair.certificate, self.pair.key),
            *make.service("origin", [("127.0.0.1", self._origin)]),
        ]

    def context(self, alpn: Iterable[str] = ()) -> ssl.SSLContext:
        """A client's context that trusts the certificate."""
        return self.authority.client_context(alpn=alpn)

    def client(self, context: ssl.SSLContext | None = None) -> Client:
        """A TLS connection with HTTP/1.1 on it."""
        return Client(("127.0.0.1", self.port), tls=context or self.context(), sni=NAME)

    def ask(self) -> int:
        """Status of a request on a new connection."""
        with self.client() as client:
            return client.request("GET", "/", NAME).status

    def raw(self) -> socket.socket:
        """A connection without TLS."""
        sock = socket.create_connection(("127.0.0.1", self.port), DEADLINE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def say(self, *pieces: bytes, fin: bool = False) -> bytes:
        """Send bytes, return all that comes back until the proxy ends the connection. TimeoutError when it does not."""
        with self.raw() as sock:
            try:
                for piece in pieces:
                    sock.sendall(piece)
                if fin:
                    sock.shutdown(socket.SHUT_WR)
            except OSError as error:  # it has heard enough, and there is nothing left to shut down
                assert not isinstance(error, TimeoutError)
            return read_to_end(sock)


def read_to_end(sock: socket.socket) -> bytes:
    """What comes until the end; a reset is an end."""
    got = b""
    try:
        while data := sock.recv(65536):
            got += data
    except ConnectionResetError:
        pass
    return got


class ByHand:
    """A TLS client whose bytes the test carries to the proxy itself, cut as `cut` says."""

    def __init__(
        self, port: TlsPort, context: ssl.SSLContext, cut: Callable[[bytes], Iterable[bytes]]
    ) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=NAME)
        self._sock = port.raw()
        self._cut = cut

    def __enter__(self) -> ByHand:
        try:
            self._until(self._tls.do_handshake)
        except BaseException:
            self._sock.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def ask(self) -> bytes:
        """The status line of a request."""
        self._tls.write(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        return self._until(lambda: self._tls.read(4096)).partition(b"\r\n")[0]

    def _until(self, step: Callable[[], T]) -> T:
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                self._carry()
                data = self._sock.recv(65536)
                if not data:
                    raise ConnectionError("the proxy ended the connection") from None
                self._in.write(data)
            else:
                self._carry()
                return done

    def _carry(self) -> None:
        if self._out.pending:
            for piece in self._cut(self._out.read()):
                self._sock.sendall(piece)


def record(kind: int, body: bytes, version: bytes = b"\x03\x01") -> bytes:
    """One TLS record."""
    return bytes([kind]) + version + len(body).to_bytes(2, "big") + body


ALERT, HANDSHAKE, DATA, HEARTBEAT = 21, 22, 23, 24


def alerts(data: bytes) -> list[int]:
    """Descriptions of the plain alerts in what a server sent; it sends nothing else to who was never its client."""
    found = []
    while data:
        kind, length = data[0], int.from_bytes(data[3:5], "big")
        assert kind == ALERT and length == 2, data[:64]
        found.append(data[6])
        data = data[5 + length :]
    return found
