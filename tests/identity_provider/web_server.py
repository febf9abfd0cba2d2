"""The HTTP server of providers and applications of these tests: a thread for each connection, with one request.

In: a function from a `Call` to an `Answer`; None closes the connection without an answer.
Must never send more than ENDLESS bytes of an endless answer.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ENDLESS = 256 * 2**20  # bytes
_BODY = 2**20  # bytes of a request
_PIECE = b" " * 65536
_IDLE = 60.0  # seconds


@dataclass(frozen=True)
class Answer:
    """A response. `endless`: the body goes on with blanks, without a Content-Length."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    endless: bool = False
    cookies: tuple[str, ...] = ()  # values of Set-Cookie


@dataclass
class Call:
    """A request, with the first value of each parameter; names of headers in lower case."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]
    target: str  # path with query, as it was sent
    endpoint: str = ""


class WebServer:
    """Listens on a port of loopback until `close`; port 0 is a free one."""

    def __init__(
        self,
        decide: Callable[[Call], Answer | None],
        port: int = 0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = _IDLE

            def do_GET(self) -> None:
                self._respond()

            def do_POST(self) -> None:
                self._respond()

            def _respond(self) -> None:
                parts = urlsplit(self.path)
                size = min(int(self.headers.get("content-length", 0)), _BODY)
                answer = decide(
                    Call(
                        self.command,
                        parts.path,
                        _first_values(parts.query),
                        _first_values(self.rfile.read(size).decode("latin-1")),
                        {name.lower(): value for name, value in self.headers.items()},
                        self.path,
                    )
                )
                if answer is None:
                    return
                with contextlib.suppress(OSError):  # the client has closed the connection
                    self._send(answer)

            def _send(self, answer: Answer) -> None:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                for cookie in answer.cookies:
                    self.send_header("set-cookie", cookie)
                if not answer.endless:
                    self.send_header("content-length", str(len(answer.body)))
                self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(answer.body)
                sent = 0
                while answer.endless and sent < ENDLESS:
                    self.wfile.write(_PIECE)
                    sent += len(_PIECE)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A connection that ends early, or a client that refuses the certificate."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.port: int = self._server.server_address[1]
        if context is not None:
            # The handshake belongs to the thread of the connection.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


def _first_values(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}
