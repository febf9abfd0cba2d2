"""What an engine may say on a connection of HTTP/2: read by rules of this file's own, so that a broken one is found and not forgiven.

In: the bytes that it sends, and what the client has granted it. Out: `Broken` at the first frame that RFC 9113 does not allow; the kinds and
codes that were seen. Must never share anything with the product, or with nghttp2.
"""

from __future__ import annotations

from hpack import Decoder

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, UPDATE, CONTINUATION = range(10)
_CONNECTION = {SETTINGS, PING, GOAWAY}
_STREAM = {DATA, HEADERS, RST, CONTINUATION}
_LARGEST = 16_384  # of a frame, as long as the client has not said otherwise
_WINDOW = 65_535


class Broken(AssertionError):
    """The engine said what it may not say."""


class FrameWatch:
    """One connection. The client's grants are told as it gives them: they count from then on, as an engine may know of them."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.goaway = False
        self.window = _WINDOW  # of the connection
        self.extra: dict[int, int] = {}  # of streams, beyond the one they begin with
        self.largest = _LARGEST
        self.initial = _WINDOW  # the largest that was ever granted
        self._sent: dict[int, int] = {}  # bytes of bodies
        self._heads: dict[int, bool] = {}  # stream -> a final head is out
        self._over: set[int] = set()
        self._block: tuple[int, bytes, bool] | None = None
        self._decoder = Decoder()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take bytes of the engine."""
        self._rest += data
        while len(self._rest) >= 9:
            length = int.from_bytes(self._rest[:3], "big")
            if length > self.largest:
                raise Broken(f"a frame of {length} bytes")
            if len(self._rest) < 9 + length:
                return
            kind, flags = self._rest[3], self._rest[4]
            stream = int.from_bytes(self._rest[5:9], "big")
            payload, self._rest = self._rest[9 : 9 + length], self._rest[9 + length :]
            self._frame(kind, flags, stream, payload)

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self.seen.add(f"frame {kind} {flags}")
        if self._block and (kind != CONTINUATION or stream != self._block[0]):
            raise Broken(f"frame {kind} within a block")
        if (kind in _CONNECTION) != (stream == 0) and kind != UPDATE:
            raise Broken(f"frame {kind} on stream {stream}")
        if kind == PUSH or kind > CONTINUATION:
            raise Broken(f"frame {kind}")
        if kind in _STREAM and stream % 2 == 0:
            raise Broken(f"frame {kind} on stream {stream}, which is no client's")
        if kind in (DATA, HEADERS) and stream in self._over:
            raise Broken(f"frame {kind} on stream {stream}, which is over")
        if kind == DATA:
            self._data(flags, stream, payload)
        elif kind == HEADERS:
            self._block = (stream, payload, bool(flags & 1))
        elif kind == CONTINUATION:
            if not self._block:
                raise Broken("a continuation of nothing")
            self._block = (stream, self._block[1] + payload, self._block[2])
        elif kind == RST:
            self.seen.add(f"reset {int.from_bytes(payload, 'big')}")
            self._over.add(stream)
        elif kind == GOAWAY:
            self.seen.add(f"goaway {int.from_bytes(payload[4:8], 'big')}")
            self.goaway = True
        if kind in (HEADERS, CONTINUATION) and flags & 4 and self._block:
            self._fields(*self._block)
            self._block = None

    def _data(self, flags: int, stream: int, payload: bytes) -> None:
        if not self._heads.get(stream):
            raise Broken(f"a body without a head on stream {stream}")
        self.window -= len(payload)
        sent = self._sent[stream] = self._sent.get(stream, 0) + len(payload)
        if self.window < 0 or sent > self.initial + self.extra.get(stream, 0):
            raise Broken(f"more than the windows of stream {stream}")
        if flags & 1:
            self._over.add(stream)

    def _fields(self, stream: int, block: bytes, ends: bool) -> None:
        fields = [(bytes(one[0]), bytes(one[1])) for one in self._decoder.decode(block, raw=True)]
        names = [name for name, _ in fields]
        if any(name != name.lower() or b"\0" in value for name, value in fields):
            raise Broken(f"fields {fields}")
        if self._heads.get(stream):  # trailers
            if not ends or any(name.startswith(b":") for name in names):
                raise Broken(f"trailers {fields}")
        elif names.count(b":status") != 1 or names[0] != b":status":
            raise Broken(f"a head {fields}")
        else:
            status = int(fields[0][1])
            self.seen.add(f"status {status}")
            if status == 101 or (status < 200 and ends):
                raise Broken(f"status {status}, end {ends}")
            self._heads[stream] = status >= 200
        if ends:
            self._over.add(stream)
