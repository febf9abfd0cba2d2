"""A client of HTTP/2 that may misbehave: hyper-h2's frames over one socket, checks of its own switched off.

In: an address. Out: what came back, stream by stream. Must never wait without a ceiling.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    Event,
    InformationalResponseReceived,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

CEILING = 20.0  # seconds, against hangs
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

Fields = list[tuple[bytes, bytes]]


@dataclass
class Stream:
    """What came back on one stream."""

    status: int = 0
    fields: Fields = field(default_factory=list)
    body: bytes = b""
    trailers: Fields = field(default_factory=list)
    interim: list[int] = field(default_factory=list)
    ended: bool = False
    reset: int | None = None

    def value(self, name: bytes) -> bytes | None:
        """The first field of that name."""
        return next((value for one, value in self.fields if one == name), None)


class H2Client:
    """One connection. `read(until)` handles what comes until the condition holds or the peer is gone."""

    def __init__(
        self,
        port: int,
        *,
        window: bool = True,
        start: bool = True,
        source: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        sni: str | None = None,
    ) -> None:
        address = ("127.0.0.1", port)
        self.socket = socket.create_connection(address, CEILING, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.scheme = "http"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=sni)
            self.scheme = "https"
        self.frames = H2Connection(
            H2Configuration(
                client_side=True,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                split_outbound_cookies=False,
            )
        )
        self.streams: dict[int, Stream] = {}
        self.goaways: list[tuple[int, int]] = []  # (code, last stream)
        self.pongs = 0
        self.gone = False
        self.heard = False  # bytes from the peer
        self._buffer = b""
        self._next = 1
        self._gives = window
        if start:
            self.frames.initiate_connection()
            self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def flush(self) -> None:
        """Send what hyper-h2 wants to say."""
        self.send(self.frames.data_to_send())

    def send(self, data: bytes) -> None:
        """Send bytes as they are; a peer that is gone is found when reading."""
        try:
            if data:
                self.socket.sendall(data)
        except OSError:
            self.gone = True

    def ask(
        self, fields: Iterable[tuple[str, str]] = (), *, end: bool = True, **pseudo: str
    ) -> int:
        """Open a stream: GET / of "a", or what `pseudo` says; returns its number."""
        head = {"method": "GET", "scheme": self.scheme, "authority": "a", "path": "/"} | pseudo
        number, self._next = self._next, self._next + 2
        self.streams[number] = Stream()
        block = [(f":{name}", value) for name, value in head.items() if value] + list(fields)
        self.frames.send_headers(number, block, end_stream=end)
        self.flush()
        return number

    def get(self, fields: Iterable[tuple[str, str]] = (), **pseudo: str) -> Stream:
        """One request without a body, to its end."""
        return self.finish(self.ask(fields, **pseudo))

    def body(self, number: int, data: bytes, *, end: bool = True) -> None:
        """Send all of it, as windows allow; stops when the stream is over."""
        stream = self.streams[number]
        while data and not (self.gone or stream.ended or stream.reset is not None):
            room = min(self.frames.local_flow_control_window(number), 16384)
            if room <= 0:
                self.read_some()
                continue
            self.frames.send_data(number, data[:room], end_stream=end and len(data) <= room)
            data = data[room:]
            self.flush()

    def trail(self, number: int, fields: Iterable[tuple[str, str]]) -> None:
        """End the request with trailers."""
        self.frames.send_headers(number, list(fields), end_stream=True)
        self.flush()

    def finish(self, number: int) -> Stream:
        """Read until the stream has ended or was reset."""
        stream = self.streams[number]
        self.read(lambda: stream.ended or stream.reset is not None)
        return stream

    def read(self, until: Callable[[], bool]) -> None:
        """Handle what comes until the condition holds, or nothing comes any more."""
        while not until() and not self.gone:
            self.read_some()

    def read_to_end(self) -> None:
        """Handle what comes until the peer closes."""
        self.read(lambda: False)

    def read_some(self) -> None:
        """One read."""
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.gone = True
            return
        self.heard = True
        self._buffer += data
        while (frame := self._next_frame()) is not None:
            try:
                events = self.frames.receive_data(frame)
            except ProtocolError as error:
                raise AssertionError(f"the proxy sent what is not HTTP/2: {error}") from error
            for event in events:
                self._on(event)
        self.flush()

    def _next_frame(self) -> bytes | None:
        """One frame. GOAWAY is ours: hyper-h2 takes nothing after it, while streams go on (RFC 9113 6.8)."""
        while len(self._buffer) >= 9:
            length = 9 + int.from_bytes(self._buffer[:3], "big")
            if len(self._buffer) < length:
                break
            frame, self._buffer = self._buffer[:length], self._buffer[length:]
            if frame[3] != 7:
                return frame
            last, code = struct.unpack(">II", frame[9:17])
            self.goaways.append((code, last))
        return None

    def _on(self, event: Event) -> None:
        stream = self.streams.get(getattr(event, "stream_id", None) or 0, Stream())
        match event:
            case ResponseReceived():
                stream.fields = list(event.headers or [])
                stream.status = int(dict(stream.fields)[b":status"])
            case InformationalResponseReceived():
                stream.interim.append(int(dict(event.headers or [])[b":status"]))
            case DataReceived():
                stream.body += event.data or b""
                if self._gives:
                    length = event.flow_controlled_length or 0
                    self.frames.acknowledge_received_data(length, event.stream_id or 0)
            case TrailersReceived():
                stream.trailers = list(event.headers or [])
            case StreamEnded():
                stream.ended = True
            case StreamReset():
                stream.reset = int(event.error_code or 0)
            case PingAckReceived():
                self.pongs += 1
