"""A backend that speaks HTTP/2 on the test's own loop: every stream is an `Ask` that the test, or a function, answers.

In: connections from the engine. Out: requests as they come, connections as they come and go. Frames are hyper-h2's, with its checks of
what it sends switched off: it may misbehave. Must never answer by itself unless it was given a function to do so.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes

from core.client import DEADLINE

Fields = list[tuple[str, str]]


class Ask:
    """One request."""

    def __init__(self, link: Link, stream: int, fields: Fields) -> None:
        self.link = link
        self.stream = stream
        self.fields = fields
        self.body = b""
        self.trailers: Fields = []
        self.alone = False  # END_STREAM was on its head
        self.ended = False
        self.reset: int | None = None

    def value(self, name: str) -> str | None:
        """The first field of that name."""
        return next((value for one, value in self.fields if one == name), None)

    def head(self, status: int = 200, *fields: tuple[str, str], end: bool = False) -> None:
        """The head of an answer, interim or not."""
        self.link.frames.send_headers(self.stream, [(":status", str(status)), *fields], end)
        self.link.send()

    def data(self, data: bytes, *, end: bool = False) -> None:
        """Bytes of its body, as the engine's windows allow."""
        self.link.queue(self.stream, data, end)

    def trail(self, *fields: tuple[str, str]) -> None:
        """Trailers, and the end, behind what waits for windows."""
        self.link.queue(self.stream, b"", list(fields))

    def reply(self, body: bytes = b"", status: int = 200, *fields: tuple[str, str]) -> None:
        """A whole answer."""
        self.head(status, ("content-length", str(len(body))), *fields, end=not body)
        if body:
            self.data(body, end=True)

    def refuse(self, code: int) -> None:
        """RST_STREAM."""
        self.link.frames.reset_stream(self.stream, code)
        self.link.send()


class Link(asyncio.Protocol):
    """One connection from the engine."""

    transport: asyncio.Transport

    def __init__(self, backend: H2Backend) -> None:
        self.backend = backend
        self.asks: dict[int, Ask] = {}
        self.lost = False
        self.goaway: int | None = None
        self.takes = True  # gives windows back
        self.untaken: dict[int, int] = {}
        self._waiting: dict[int, tuple[bytearray, bool | Fields]] = {}
        self.frames = H2Connection(
            H2Configuration(
                client_side=False,
                header_encoding="utf-8",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.backend.links.append(self)
        self.frames.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = self.backend.streams
        if self.backend.window:
            self.frames.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = self.backend.window
        if self.backend.connects:
            self.frames.local_settings[SettingCodes.ENABLE_CONNECT_PROTOCOL] = 1
        self.frames.local_settings.acknowledge()  # so that the first SETTINGS has them
        self.frames.initiate_connection()
        if not self.backend.silent:
            self.send()

    def data_received(self, data: bytes) -> None:
        if self.goaway is not None:
            return  # what follows the engine's last word is of no concern; hyper-h2 would not have it
        for event in self.frames.receive_data(data):
            self._on(event)
        if not self.backend.silent:
            self.send()

    def _on(self, event: Event) -> None:
        match event:
            case RequestReceived():
                assert event.stream_id and event.headers
                ask = Ask(self, event.stream_id, [(str(k), str(v)) for k, v in event.headers])
                ask.alone = event.stream_ended is not None
                self.asks[event.stream_id] = ask
                self.backend.take(ask)
            case DataReceived():
                assert event.stream_id and event.data is not None
                self.asks[event.stream_id].body += event.data
                size = event.flow_controlled_length or 0
                if self.takes and size:
                    self.frames.acknowledge_received_data(size, event.stream_id)
                else:
                    self.untaken[event.stream_id] = self.untaken.get(event.stream_id, 0) + size
            case TrailersReceived():
                assert event.stream_id and event.headers
                self.asks[event.stream_id].trailers = [(str(k), str(v)) for k, v in event.headers]
            case StreamEnded():
                assert event.stream_id
                self.asks[event.stream_id].ended = True
                self.backend.complete(self.asks[event.stream_id])
            case StreamReset():
                assert event.stream_id
                self._waiting.pop(event.stream_id, None)
                self.asks[event.stream_id].reset = int(event.error_code or 0)
            case ConnectionTerminated():
                self.goaway = int(event.error_code or 0)
            case PingReceived():
                self.backend.pings += 1
            case _:
                pass
        for stream in list(self._waiting):
            self._push(stream)

    def take(self) -> None:
        """Give back the windows that were not given back."""
        self.takes = True
        for stream, size in self.untaken.items():
            if size:
                self.frames.acknowledge_received_data(size, stream)
        self.untaken.clear()
        self.send()

    def queue(self, stream: int, data: bytes, end: bool | Fields) -> None:
        """Send as much of a body as the windows allow, and the rest when they do; an end may have trailers."""
        held, _ = self._waiting.get(stream, (bytearray(), False))
        self._waiting[stream] = (held + data, end)
        self._push(stream)
        self.send()

    def _push(self, stream: int) -> None:
        data, end = self._waiting[stream]
        while data:
            room = min(
                self.frames.local_flow_control_window(stream), self.frames.max_outbound_frame_size
            )
            if room <= 0:
                return
            self.frames.send_data(stream, bytes(data[:room]))
            del data[:room]
        del self._waiting[stream]
        if isinstance(end, list):
            self.frames.send_headers(stream, end, True)
        elif end:
            self.frames.end_stream(stream)

    def send(self, raw: bytes = b"") -> None:
        """What the frames have to say, and raw bytes behind it."""
        if not self.lost:
            self.transport.write(self.frames.data_to_send() + raw)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        if not self.backend.open:
            self.backend.alone.set()

    def goes_away(self, last: int | None = None, code: int = 0) -> None:
        """GOAWAY; the connection stays."""
        number = max([*self.asks, 0]) if last is None else last
        self.send(b"\0\0\x08\x07\0\0\0\0\0" + number.to_bytes(4, "big") + code.to_bytes(4, "big"))

    def close(self) -> None:
        """FIN."""
        self.transport.close()


Answer = Callable[[Ask], None]


class H2Backend:
    """A listening loopback port. `answer` is called with each request that is complete, `begun` with each head."""

    port: int

    def __init__(
        self,
        answer: Answer | None = None,
        *,
        begun: Answer | None = None,
        streams: int = 100,
        window: int = 0,
        connects: bool = False,
        silent: bool = False,
    ) -> None:
        self.answer, self.begun = answer, begun
        self.streams, self.window, self.connects, self.silent = streams, window, connects, silent
        self.links: list[Link] = []
        self.asks: list[Ask] = []
        self.pings = 0
        self.alone = asyncio.Event()  # its last connection has ended, once
        self._fresh: asyncio.Queue[Ask] = asyncio.Queue()
        self._server: asyncio.Server | None = None

    async def start(self, context: ssl.SSLContext | None = None) -> H2Backend:
        """Listen."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Link(self), "127.0.0.1", 0, ssl=context, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def take(self, ask: Ask) -> None:
        """Called by a link."""
        self.asks.append(ask)
        self._fresh.put_nowait(ask)
        if self.begun is not None:
            self.begun(ask)

    def complete(self, ask: Ask) -> None:
        """Called by a link."""
        if self.answer is not None:
            self.answer(ask)

    async def ask(self) -> Ask:
        """The next request, complete or not."""
        async with asyncio.timeout(DEADLINE):
            return await self._fresh.get()

    @property
    def open(self) -> list[Link]:
        """Connections that are not lost."""
        return [link for link in self.links if not link.lost]

    def stop_listening(self) -> None:
        """Take no further connections."""
        if self._server is not None:
            self._server.close()

    def close(self) -> None:
        """Stop listening, drop everything."""
        self.stop_listening()
        for link in self.open:
            link.transport.abort()


def say(text: bytes) -> Answer:
    """Always 200 with this body."""
    return lambda ask: ask.reply(text)
