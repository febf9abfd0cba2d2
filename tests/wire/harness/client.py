"""The raw client: sends exact bytes in given pieces and reads what comes back, to a response or to the end.

In: bytes, or a request built from parts. Out: `Response`s, and how the connection ended. Blocking sockets with one generous
deadline against hangs; no pooling, no retries, no repair. It must never send a byte the test did not ask for.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable

from wire.harness.responses import Response, ResponseReader

DEADLINE = 30.0  # seconds: a ceiling against hangs, not a measure
_READ = 256 * 1024

Address = tuple[str, int] | str


class NoResponse(AssertionError):
    """The connection ended, or the deadline passed, before a response was complete."""


def build_request(
    method: str = "GET",
    target: str = "/",
    host: str = "a",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    *,
    chunked: bool = False,
) -> bytes:
    """The bytes of one request; a body is framed by Content-Length, or as one chunk."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if chunked:
        lines.append("Transfer-Encoding: chunked")
        body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    elif body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


class Client:
    """One connection to the proxy. `ended` is "", "eof", "reset" or "timeout"."""

    def __init__(
        self,
        address: Address,
        *,
        tls: ssl.SSLContext | None = None,
        sni: str | None = None,
        source: str | None = None,
        deadline: float = DEADLINE,
        receive_buffer: int = 0,
        first: bytes = b"",
        on_connect: Callable[[int], None] | None = None,
    ) -> None:
        """`on_connect` is told the client's port, before a TLS handshake that may fail."""
        if isinstance(address, str):
            self.sock: socket.socket = socket.socket(socket.AF_UNIX)
        else:
            self.sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
            if receive_buffer:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.sock.settimeout(deadline)
            if source is not None:
                self.sock.bind((source, 0))
            self.sock.connect(address)
            if on_connect is not None:
                on_connect(self.sock.getsockname()[1])
            if first:
                self.sock.sendall(first)
            if tls is not None:
                self.sock = tls.wrap_socket(self.sock, server_hostname=sni)
        except BaseException:
            self.sock.close()
            raise
        self.address = address
        self.deadline = deadline
        self.reader = ResponseReader()
        self.responses: list[Response] = []  # complete, not handed out yet
        self.ended = ""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def local(self) -> tuple[str, int]:
        """Address and port of this end."""
        name = self.sock.getsockname()
        return str(name[0]), int(name[1])

    def expect(self, *methods: str) -> None:
        """Requests were (or will be) sent with these methods: that many responses are due."""
        self.reader.methods += methods

    def send(self, data: bytes) -> bool:
        """Exact bytes; False when the other side no longer takes them."""
        try:
            self.sock.sendall(data)
        except (ConnectionError, ssl.SSLError):
            return False
        return True

    def request(
        self,
        method: str = "GET",
        target: str = "/",
        host: str = "a",
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        chunked: bool = False,
    ) -> Response:
        """Send one request and read its response."""
        self.expect(method)
        self.send(build_request(method, target, host, headers, body, chunked=chunked))
        return self.read_response()

    def read_some(self, deadline: float | None = None) -> bool:
        """Read once; False at the end of the connection or at the deadline (`ended` says which)."""
        self.sock.settimeout(self.deadline if deadline is None else max(deadline, 0.001))
        try:
            data = self.sock.recv(_READ)
        except TimeoutError:
            self.ended = "timeout"
            return False
        except ConnectionError:
            self.ended = "reset"
            return False
        except ssl.SSLError as error:
            self.ended = "eof" if "EOF" in str(error) else "reset"
            return False
        if not data:
            self.ended = "eof"
            return False
        self.ended = ""
        self.responses += self.reader.feed(data)
        return True

    def take_in(self) -> None:
        """Read what has come, without waiting for more: an answer read now no later reset takes away."""
        look = select.poll()  # not select(): a test before may have left many descriptors in use
        look.register(self.sock, select.POLLIN)
        while not self.ended and look.poll(0):
            if not self.read_some(0.0) and self.ended == "timeout":
                self.ended = ""  # a TLS record that is not complete, or tells nothing
                break
        self.sock.settimeout(self.deadline)

    def read_response(self, deadline: float | None = None) -> Response:
        """Next complete response; NoResponse when there will be none."""
        end = time.monotonic() + (self.deadline if deadline is None else deadline)
        while not self.responses:
            if not self.read_some(end - time.monotonic()):
                last = None if self.ended == "timeout" else self.reader.end()
                if last is not None and last.complete:
                    return last
                raise NoResponse(
                    f"ended by {self.ended}, so far {last or bytes(self.reader.rest)!r}"
                )
        return self.responses.pop(0)

    def read_to_end(self, deadline: float | None = None) -> list[Response]:
        """All responses until the connection ends; the last may be cut off (`complete` is False)."""
        end = time.monotonic() + (self.deadline if deadline is None else deadline)
        while self.ended not in ("eof", "reset") and self.read_some(end - time.monotonic()):
            pass
        found, self.responses = self.responses, []
        if self.ended != "timeout" and (last := self.reader.end()) is not None:
            found.append(last)
        elif self.ended == "timeout" and self.reader.current is not None:
            found.append(self.reader.current)
        return found

    def read_raw(self, count: int) -> bytes:
        """Bytes of a tunnel: at least `count`, or what came before the end."""
        end = time.monotonic() + self.deadline
        while len(self.reader.rest) < count and self.read_some(end - time.monotonic()):
            pass
        data = bytes(self.reader.rest[:count])
        del self.reader.rest[:count]
        return data

    def finish(self) -> None:
        """Send FIN, keep reading."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close with RST."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close with FIN."""
        self.sock.close()
