"""The request parser of the test origins: strict, incremental, and independent of the product's parsers.

In: the bytes of one connection, in any pieces. Out: complete `Message`s with the exact bytes they were made of, and what
is left over. A proxy must never emit anything doubtful, so every liberty that RFC 9112 leaves to a sender (chunk
extensions, folded or bare line ends, two framing headers) is `Malformed` here. It must never guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!-~]+) HTTP/1\.1")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_LARGE = 1024 * 1024  # above this a chunked body is looked at only when its end may be there
_SIZE = re.compile(rb"[0-9a-fA-F]{1,16}")


class Malformed(Exception):
    """The peer sent something that a careful proxy never sends."""


@dataclass(frozen=True)
class Message:
    """One complete request. Header names are lower case, values as sent without surrounding blanks."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    raw: bytes = field(repr=False, compare=False)
    chunked: bool = field(default=False, compare=False)
    connection: int = field(default=0, compare=False)  # ordinal of the connection it came on
    trailers: tuple[tuple[bytes, bytes], ...] = ()

    def values(self, name: bytes) -> list[bytes]:
        """All values of a header, in order."""
        return [value for key, value in self.headers if key == name]

    def value(self, name: bytes) -> bytes | None:
        """The only value of a header, None when absent; AssertionError when repeated."""
        found = self.values(name)
        assert len(found) < 2, f"{name!r} came {len(found)} times: {found!r}"
        return found[0] if found else None


@dataclass(frozen=True)
class Head:
    """Request line and headers, before the body is there."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    length: int  # of the body; -1 is chunked
    size: int  # bytes of the head


def parse_head(data: bytes) -> Head | None:
    """The head at the start of `data`, None while it is incomplete, Malformed when it is wrong."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = data[:end].split(b"\r\n")
    first = _LINE.fullmatch(lines[0])
    if first is None:
        raise Malformed(f"request line {lines[0]!r}")
    headers = _parse_fields(lines[1:])
    return Head(first[1], first[2], tuple(headers), _body_length(headers), end + 4)


def _parse_fields(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    fields: list[tuple[bytes, bytes]] = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or _TOKEN.fullmatch(name) is None:
            raise Malformed(f"header line {line!r}")
        value = value.strip(b" \t")
        if _VALUE.fullmatch(value) is None:
            raise Malformed(f"value of {name!r}: {value!r}")
        fields.append((name.lower(), value))
    return fields


def _body_length(headers: list[tuple[bytes, bytes]]) -> int:
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if sum(name == b"host" for name, _ in headers) != 1:
        raise Malformed("not exactly one Host")
    if len(lengths) + len(codings) > 1:
        raise Malformed(f"framing headers {lengths!r} {codings!r}")
    if codings:
        if codings[0].lower() != b"chunked":
            raise Malformed(f"transfer-encoding {codings[0]!r}")
        return -1
    if lengths:
        if not lengths[0].isdigit():
            raise Malformed(f"content-length {lengths[0]!r}")
        return int(lengths[0])
    return 0


def parse_chunked(
    data: bytes, start: int
) -> tuple[bytes, tuple[tuple[bytes, bytes], ...], int] | None:
    """A chunked body at `start`: (content, trailers, offset behind it), None while incomplete. No extension."""
    parts: list[bytes] = []
    at = start
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            if len(data) - at > 18:
                raise Malformed(f"chunk size {data[at : at + 20]!r}")
            return None
        if _SIZE.fullmatch(data, at, end) is None:
            raise Malformed(f"chunk size {data[at:end]!r}")
        size = int(data[at:end], 16)
        at = end + 2
        if size == 0:
            end = data.find(b"\r\n\r\n", at - 2)
            if end < 0:
                return None
            return (
                b"".join(parts),
                tuple(_parse_fields(data[at:end].split(b"\r\n")) if end > at else ()),
                end + 4,
            )
        if len(data) < at + size + 2:
            return None
        if data[at + size : at + size + 2] != b"\r\n":
            raise Malformed(f"after a chunk: {data[at + size : at + size + 20]!r}")
        parts.append(data[at : at + size])
        at += size + 2


class RequestReader:
    """Cuts the bytes of one connection into messages."""

    def __init__(self, connection: int = 0) -> None:
        self.connection = connection
        self.rest = bytearray()  # bytes of a message that is not complete
        self._head: Head | None = None

    def feed(self, data: bytes) -> list[Message]:
        """Take bytes, return the messages that are complete now. Raises Malformed."""
        self.rest += data
        found: list[Message] = []
        while self.rest:
            message = self._cut()
            if message is None:
                break
            found.append(message)
        return found

    def _cut(self) -> Message | None:
        if self._head is None:
            if b"\r\n\r\n" not in self.rest:
                return None
            self._head = parse_head(bytes(self.rest))
            assert self._head is not None
        head = self._head
        trailers: tuple[tuple[bytes, bytes], ...] = ()
        if head.length >= 0:
            end = head.size + head.length
            if len(self.rest) < end:
                return None
            body = bytes(self.rest[head.size : end])
        elif len(self.rest) > _LARGE and not self.rest.endswith(b"\r\n\r\n"):
            return None
        else:
            parsed = parse_chunked(bytes(self.rest), head.size)
            if parsed is None:
                return None
            body, trailers, end = parsed
        raw = bytes(self.rest[:end])
        del self.rest[:end]
        self._head = None
        return Message(
            head.method,
            head.target,
            head.headers,
            body,
            raw,
            head.length < 0,
            self.connection,
            trailers,
        )
