"""One request over HTTP/2 by prior knowledge, on a new connection: what the probe asks where a row speaks HTTP/2.

In: a port, fields, a body. Out: an `Answer` with its trailers. Must never be used for load: it is written to be right, on the library `h2`,
and shares no code with the generators.
"""

import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.events

READ_BYTES = 1 << 16
WINDOW = 1 << 24
EMPTY_MESSAGE = bytes(5)


@dataclass(frozen=True)
class Answer:
    """Status, headers by lower-case name, body, trailers."""

    status: int
    headers: dict[str, str]
    body: bytes
    trailers: dict[str, str] = field(default_factory=dict)


def ask(
    port: int,
    method: str,
    path: str,
    host: str,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 15.0,
) -> Answer:
    """The whole answer; OSError when it does not come, or is reset."""
    deadline = time.monotonic() + timeout
    config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
    state = h2.connection.H2Connection(config)
    with socket.create_connection(("127.0.0.1", port), timeout) as sock:
        state.initiate_connection()
        state.increment_flow_control_window(WINDOW)
        fields = [(":method", method), (":scheme", "http"), (":authority", host), (":path", path)]
        state.send_headers(1, [*fields, *(headers or {}).items()], end_stream=body is None)
        state.increment_flow_control_window(WINDOW, 1)
        exchange = _Exchange(state, body or b"")
        while not exchange.over:
            exchange.send_body()
            sock.sendall(state.data_to_send())
            if time.monotonic() > deadline:
                raise TimeoutError(f"{method} {path}: no answer within {timeout:g} s")
            data = sock.recv(READ_BYTES)
            if not data:
                raise ConnectionError(f"{method} {path}: the connection ended before its answer")
            try:
                exchange.take(data)
            except h2.exceptions.ProtocolError as error:
                raise ConnectionError(f"{method} {path}: {error}") from error
    return Answer(
        int(exchange.headers.pop(":status")),
        exchange.headers,
        bytes(exchange.body),
        exchange.trailers,
    )


def call(port: int, path: str, host: str, timeout: float = 15.0) -> Answer:
    """A unary call with an empty message."""
    headers = {"content-type": "application/grpc", "te": "trailers"}
    return ask(port, "POST", path, host, headers, EMPTY_MESSAGE, timeout)


class _Exchange:
    """Stream 1 of a connection."""

    def __init__(self, state: h2.connection.H2Connection, body: bytes) -> None:
        self.state = state
        self.rest = body
        self.headers: dict[str, str] = {}
        self.trailers: dict[str, str] = {}
        self.body = bytearray()
        self.over = False

    def send_body(self) -> None:
        """What the window takes of it."""
        while self.rest:
            room = min(self.state.local_flow_control_window(1), self.state.max_outbound_frame_size)
            if room <= 0:
                return
            part, self.rest = self.rest[:room], self.rest[room:]
            self.state.send_data(1, part, end_stream=not self.rest)

    def take(self, data: bytes) -> None:
        """Bytes of the server."""
        for event in self.state.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                self.headers = dict(_texts(event.headers))
            elif isinstance(event, h2.events.TrailersReceived):
                self.trailers = dict(_texts(event.headers))
            elif isinstance(event, h2.events.DataReceived):
                self.body += event.data or b""
                self.state.acknowledge_received_data(event.flow_controlled_length or 0, 1)
            elif isinstance(event, h2.events.StreamEnded):
                self.over = True
            elif isinstance(event, h2.events.StreamReset):
                raise ConnectionError(f"reset with {event.error_code!r}")
            elif isinstance(event, h2.events.ConnectionTerminated):
                raise ConnectionError(f"the connection ended with {event.error_code!r}")


def _texts(fields: Iterable[tuple[Any, Any]] | None) -> list[tuple[str, str]]:
    return [(str(name).lower(), str(value)) for name, value in fields or []]
