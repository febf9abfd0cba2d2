"""Scripts for a whole session of HTTP/2: bytes say what a client does, what its backend does, and what comes at once.

In: any bytes at all; each is a step, the ones behind it are its details. Out: steps done on a connection of a real engine; what was seen. The
same bytes always do the same, so that a find can be played again, and bytes that are changed a little do something else that makes sense.
Must never let pass what breaks a rule: of the engine's frames (FrameWatch), of what reaches a backend (RequestReader), of what is left behind.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from hpack import Encoder

from core.fleets import make_fleet, make_host, make_listener, make_rule
from core.h2.framewatch import FrameWatch
from core.pipes import Pipe, PipeWorld
from edgefast import ir
from origin.message import Message, RequestReader

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STEPS = 400  # of one script, at most
_LAST_TURNS = 100  # of the loop, behind the end: a flood of streams is begun sixteen at a time
_HEAD = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]
#: What a head has besides, or instead.
FIELDS: list[list[tuple[str, str]]] = [
    _HEAD,
    [(":method", "POST"), *_HEAD[1:]],
    [(":method", "POST"), *_HEAD[1:], ("content-length", "5")],
    [(":method", "HEAD"), *_HEAD[1:]],
    [*_HEAD[:2], (":path", "/moved"), _HEAD[3]],
    [*_HEAD, ("te", "trailers"), ("cookie", "a=b"), ("cookie", "c=d")],
    [*_HEAD, ("expect", "100-continue")],
    [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        *_HEAD[1:],
        ("sec-websocket-version", "13"),
    ],
    [*_HEAD, ("connection", "close")],
    [*_HEAD, ("Upper", "x")],
    [*_HEAD, ("a", "b\r\nc: d")],
    [*_HEAD, ("host", "other")],
    _HEAD[:3],
    [(":method", "CONNECT"), (":authority", "a:1")],
    [*_HEAD, ("x", "y" * 3000)],
    [*_HEAD, *((f"n{number}", "v") for number in range(60))],
    [*_HEAD, ("content-length", "1"), ("content-length", "1")],
    [("x-trailer", "t")],
    [*_HEAD[:2], (":path", "*"), _HEAD[3]],
    [*_HEAD, ("accept-encoding", "gzip"), ("x-forwarded-for", "10.0.0.1")],
]
ANSWERS: list[bytes] = [
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"x" * 100_000,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz",
    b"HTTP/1.1 304 Not Modified\r\netag: a\r\n\r\n",
    b"no answer at all\r\n\r\n",
    b"",
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
]
SETTINGS = [
    (4, 0),
    (4, 100),
    (4, 1 << 20),
    (4, 1 << 31),
    (5, 16_384),
    (5, 1 << 20),
    (5, 1),
    (1, 0),
    (2, 1),
    (3, 0),
    (8, 1),
    (9, 9),
]


def fleet_of(pipes: PipeWorld) -> ir.Fleet:
    """Little of everything, so that bounds are near."""
    http2 = ir.Http2Settings(max_concurrent_streams=10, max_requests_per_connection=60)
    listener = make_listener(http2=http2)
    redirect = ir.Redirect(status=302, hostname="else.test")
    host = make_host(("/moved", make_rule(redirect=redirect)), make_rule())
    return make_fleet(listener, host, pipes.cluster_of_pipes)


class Behind:
    """The backends' ends: what has come there, and which of it waits."""

    def __init__(self, pipes: PipeWorld) -> None:
        self._pipes = pipes
        self._readers: dict[Pipe, RequestReader] = {}
        self.waiting: list[tuple[Pipe, Message]] = []

    def look(self) -> None:
        """Read what has come; raises Malformed."""
        self._pipes._accept()
        for pipe in list(self._pipes.dialled):
            reader = self._readers.setdefault(pipe, RequestReader())
            for message in reader.feed(pipe.take()):
                self.waiting.append((pipe, message))
            if pipe.ended:
                self.drop(pipe)

    def drop(self, pipe: Pipe) -> None:
        """Close one."""
        self.waiting = [one for one in self.waiting if one[0] is not pipe]
        self._readers.pop(pipe, None)
        self._pipes.dialled.remove(pipe)
        pipe.close()

    async def answer(self, which: int) -> None:
        """Answer the oldest request somehow; some ways need the connection's end."""
        self.look()
        if not self.waiting:
            return
        pipe, message = self.waiting.pop(0)
        data = ANSWERS[which % len(ANSWERS)]
        if message.method == b"HEAD":
            data = data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if data else data
        if data:
            await pipe.offer(data)
        if which % len(ANSWERS) in (4, 5, 7, 8, 10) or which % 3 == 2:
            await self._pipes.turns(2)
            self.drop(pipe)

    async def finish(self) -> None:
        """Nothing of a script is left for the next one."""
        self.look()
        for pipe in list(self._pipes.dialled):
            self.drop(pipe)


class Player:
    """One script on one connection."""

    def __init__(self, pipes: PipeWorld, behind: Behind, script: bytes) -> None:
        self.pipes, self.behind = pipes, behind
        self.watch = FrameWatch()
        self._script, self._at = script, 0
        self._out = bytearray()
        self._encoder = Encoder()
        self._last = -1
        self._speaks = True
        self._floor = 0  # what is not cut away: the preface
        self._steps: list[Callable[[], None]] = [
            self._open, self._open, self._open, self._data, self._trailers, self._reset,
            self._settings, self._ping, self._update, self._priority, self._split, self._raw,
            self._goaway, self._unknown, self._many, self._huffman,
        ]  # fmt: skip

    def _next(self) -> int:
        """The next byte of the script; 0 behind its end."""
        self._at += 1
        return self._script[self._at - 1] if self._at <= len(self._script) else 0

    async def play(self) -> set[str]:
        """Do all of it; returns what was seen."""
        client = await self.pipes.connect()
        self._speaks = self._next() % 16 != 0
        self._out += PREFACE if self._speaks else b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"
        self._floor = len(self._out)
        self._frame(4, 0, 0, b"")
        for _ in range(STEPS):
            if self._at >= len(self._script) or client.ended:
                break
            step = self._next()
            if step & 3 == 3:  # it is the others' turn
                await self._send(client, step >> 2)
            else:
                self._steps[(step >> 2) % len(self._steps)]()
        await self._send(client, 0)
        for _ in range(20):
            await self.behind.answer(0)
        await self.pipes.turns(_LAST_TURNS)
        self._hear(client.take())
        client.close()
        self.pipes.pipes.remove(client)
        await self.pipes.until(lambda: self.pipes.engine.open_connections == 0)
        await self.behind.finish()
        await self.pipes.until(lambda: self.pipes.engine.active == 0)
        return self.watch.seen

    async def _send(self, client: Pipe, how: int) -> None:
        data, self._out, self._floor = bytes(self._out), bytearray(), 0
        if data:
            await client.offer(data, (0, 1, 7, 100)[how & 3] if len(data) < 600 else 0)
        await self.pipes.turns(3)
        if how & 4:
            await self.behind.answer(self._next())
            await self.pipes.turns(3)
        self._hear(client.take())

    def _hear(self, data: bytes) -> None:
        if self._speaks:
            self.watch.feed(data)
        elif data:  # what is no preface is a request of HTTP/1.1, and no good one
            self.watch.seen.add(data[:12].decode())

    # --- what a client says -----------------------------------------------------------------------

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self._out += struct.pack(">IBI", len(payload) << 8 | kind, flags, stream & 0xFFFFFFFF)
        self._out += payload

    def _stream(self, how: int) -> int:
        """Mostly one that is there."""
        if how < 200:
            return max(self._last - 2 * (how % 6), 1)
        return (0, 2, self._last + 2, 1, 0x7FFFFFFF, 0x80000001)[how % 6]

    def _open(self) -> None:
        how, which = self._next(), self._next()
        if how < 250:
            self._last += 2
        block = self._encoder.encode(FIELDS[(which & 127) % len(FIELDS)])
        end = 1 if which >> 7 or how % 3 == 0 else 0
        if how & 16:  # in pieces
            cut = len(block) // 2
            self._frame(1, end, self._last, block[:cut])
            self._frame(9, 4 if how % 7 else 0, self._last, block[cut:])
        elif how & 32:
            self._frame(1, end | 4 | 8, self._last, bytes([how % 8]) + block + bytes(how % 8))
        elif how & 64:
            self._frame(1, end | 4 | 32, self._last, struct.pack(">IB", how % 4, 16) + block)
        else:
            self._frame(1, end | 4, self._last, block)

    def _data(self) -> None:
        how, size = self._next(), self._next()
        amount = (0, 1, 5, 100, 16_384, 16_385)[size % 6]
        body = bytes(amount)
        if size & 64 and amount < 16_000:
            body = bytes([size]) + body + bytes(size if how & 1 else 0)
            self._frame(0, 8 | size >> 7, self._stream(how), body)
        else:
            self._frame(0, size >> 7, self._stream(how), body)

    def _trailers(self) -> None:
        how, which = self._next(), self._next()
        fields = FIELDS[17] if which % 4 else FIELDS[which // 4 % len(FIELDS)]
        self._frame(1, 5 if how & 3 else 4, self._stream(how), self._encoder.encode(fields))

    def _reset(self) -> None:
        how = self._next()
        self._frame(3, 0, self._stream(how), struct.pack(">I", how & 15)[: 4 if how < 250 else 3])

    def _settings(self) -> None:
        how = self._next()
        pairs = [SETTINGS[(how + at * 5) % len(SETTINGS)] for at in range(how >> 6)]
        for key, value in pairs:
            if key == 4 and value < 1 << 31:
                self.watch.initial = max(self.watch.initial, value)
            if key == 5 and value > self.watch.largest:
                self.watch.largest = value
        payload = b"".join(struct.pack(">HI", *pair) for pair in pairs)
        self._frame(4, 1 if how == 1 else 0, 0, payload)

    def _ping(self) -> None:
        how = self._next()
        for _ in range(1 if how < 250 else 200):
            self._frame(6, how & 1, 0 if how % 32 else 1, bytes(8 if how % 16 else 7))

    def _update(self) -> None:
        how, which = self._next(), self._next()
        amount = (0, 1, 1000, 1 << 20, 0x7FFFFFFF)[how % 5]
        stream = 0 if which & 1 else self._stream(which)
        if stream:
            self.watch.extra[stream] = self.watch.extra.get(stream, 0) + amount
        else:
            self.watch.window += amount
        self._frame(8, 0, stream, struct.pack(">I", amount))

    def _priority(self) -> None:
        how = self._next()
        self._frame(2, 0, self._stream(how), struct.pack(">IB", self._stream(how ^ 1), how))

    def _split(self) -> None:
        """The last frame is not whole."""
        how = self._next()
        if how > 240:
            del self._out[max(len(self._out) - how + 240, self._floor) :]

    def _raw(self) -> None:
        size = self._next() % 16
        self._out += bytes(self._next() for _ in range(size))

    def _goaway(self) -> None:
        self._frame(7, 0, 0, struct.pack(">II", self._next(), self._next()))

    def _unknown(self) -> None:
        how = self._next()
        self._frame(10 + how % 200, how, self._stream(how), bytes(how % 20))

    def _many(self) -> None:
        """A flood of one kind."""
        how = self._next()
        if how & 1:
            for _ in range(how):
                self._open_and_reset()
        else:
            for _ in range(how):
                self._frame(0, 0, self._stream(how), b"")

    def _open_and_reset(self) -> None:
        self._last += 2
        self._frame(1, 5, self._last, self._encoder.encode(_HEAD))
        self._frame(3, 0, self._last, b"\0\0\0\x08")

    def _huffman(self) -> None:
        """A block that is no HPACK, or one that refers to what is not there."""
        how = self._next()
        self._last += 2
        self._frame(1, 5, self._last, bytes([how, 255 - how, 0x80 | how, 0x7F]) * (how % 5))


async def play(pipes: PipeWorld, behind: Behind, script: bytes) -> set[str]:
    """Play a script; what was seen of frames, and which counters have moved."""
    before = pipes.counters.all()
    seen = await Player(pipes, behind, script).play()
    after = pipes.counters.all()
    moved = {name for name in after if after[name] != before[name]}
    faults = [*pipes.take_faults(), *pipes.errors]
    pipes.errors.clear()
    assert not faults, faults
    return seen | moved
