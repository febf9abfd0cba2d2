"""Response parser of the test client: strict, incremental, independent of the product and of h11.

In: the bytes of one client connection, and the methods of the requests sent on it. Out: `Response`s with interim (1xx)
answers beside the final ones, and how each body was framed. Anything RFC 9112 does not allow a sender raises `BadResponse`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

_STATUS = re.compile(rb"HTTP/1\.1 ([1-9][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)")
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,16}")

Framing = Literal["none", "length", "chunked", "eof"]


class BadResponse(AssertionError):
    """The proxy sent bytes to the client that are no HTTP/1.1 response."""


@dataclass
class Response:
    """One final answer with the interim ones before it."""

    status: int
    reason: bytes
    headers: list[tuple[bytes, bytes]]  # names in lower case
    framing: Framing
    body: bytes = b""
    complete: bool = False
    length: int = 0  # announced by Content-Length
    interim: list[Response] = field(default_factory=list)
    trailers: list[tuple[bytes, bytes]] = field(default_factory=list)
    head: bytes = b""

    def values(self, name: str) -> list[str]:
        """All values of a header."""
        key = name.encode().lower()
        return [value.decode("latin-1") for item, value in self.headers if item == key]

    def value(self, name: str) -> str | None:
        """The only value of a header; None when absent."""
        found = self.values(name)
        assert len(found) < 2, f"{name} came {len(found)} times: {found}"
        return found[0] if found else None

    @property
    def closes(self) -> bool:
        """True when the answer says that the connection ends with it."""
        tokens = ",".join(self.values("connection")).lower().replace(" ", "").split(",")
        return "close" in tokens or self.framing == "eof"


class ResponseReader:
    """Cuts a connection's bytes into responses; `methods` is the queue of requests that wait for one."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self.rest = bytearray()
        self.tunnel = False  # after 101: `rest` holds raw bytes
        self.current: Response | None = None  # head seen, body not complete
        self._interim: list[Response] = []

    def feed(self, data: bytes) -> list[Response]:
        """Take bytes, return the responses that are complete now."""
        self.rest += data
        done: list[Response] = []
        while not self.tunnel:
            if self.current is None and not self._begin(done):
                break
            if self.current is not None:
                if not self._body(self.current):
                    break
                self.current.complete = True
                done.append(self.current)
                self.current = None
        return done

    def end(self) -> Response | None:
        """The connection has ended: returns the response that it completes or cuts off, if any."""
        current, self.current = self.current, None
        if current is not None and current.framing == "eof":
            current.complete = True
        if current is None and self.rest and not self.tunnel:
            raise BadResponse(f"the connection ended within a head: {bytes(self.rest)!r}")
        return current

    def _begin(self, done: list[Response]) -> bool:
        end = self.rest.find(b"\r\n\r\n")
        if end < 0:
            if self.rest and not (b"HTTP/1.1 "[: len(self.rest)] == bytes(self.rest[:9])):
                raise BadResponse(f"junk instead of a response: {bytes(self.rest[:80])!r}")
            return False
        raw = bytes(self.rest[: end + 4])
        response = _parse_head(raw)
        if not self.methods:
            raise BadResponse(f"a response that nobody asked for: {raw[:200]!r}")
        del self.rest[: end + 4]
        if response.status == 101:
            self.methods.pop(0)
            response.interim, self._interim = self._interim, []
            response.complete = True
            self.tunnel = True
            done.append(response)
            return False
        if response.status < 200:
            response.complete = True
            self._interim.append(response)
            return True
        response.interim, self._interim = self._interim, []
        method = self.methods.pop(0)
        if method == "HEAD" or response.status in (204, 304):
            response.framing = "none"
        self.current = response
        return True

    def _body(self, response: Response) -> bool:
        if response.framing == "none":
            return True
        if response.framing == "length":
            take = response.length - len(response.body)
            response.body += bytes(self.rest[:take])
            del self.rest[:take]
            return len(response.body) == response.length
        if response.framing == "eof":
            response.body += bytes(self.rest)
            self.rest.clear()
            return False
        while True:
            end = self.rest.find(b"\r\n")
            if end < 0:
                return False
            if _SIZE.fullmatch(self.rest, 0, end) is None:
                raise BadResponse(f"chunk size {bytes(self.rest[:end])!r}")
            size = int(self.rest[:end], 16)
            if size == 0:
                return self._trailers(response, end)
            if len(self.rest) < end + 2 + size + 2:
                return False
            if self.rest[end + 2 + size : end + 4 + size] != b"\r\n":
                raise BadResponse("no CRLF behind a chunk")
            response.body += bytes(self.rest[end + 2 : end + 2 + size])
            del self.rest[: end + 4 + size]

    def _trailers(self, response: Response, at: int) -> bool:
        end = self.rest.find(b"\r\n\r\n", at)
        if end < 0:
            return False
        if end > at:
            response.trailers = _parse_fields(bytes(self.rest[at + 2 : end]).split(b"\r\n"))
        del self.rest[: end + 4]
        return True


def _parse_fields(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    fields: list[tuple[bytes, bytes]] = []
    for line in lines:
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadResponse(f"header line {line!r}")
        fields.append((name.lower(), value))
    return fields


def _parse_head(raw: bytes) -> Response:
    lines = raw[:-4].split(b"\r\n")
    first = _STATUS.fullmatch(lines[0])
    if first is None:
        raise BadResponse(f"status line {lines[0]!r}")
    headers = _parse_fields(lines[1:])
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise BadResponse(f"several framing headers in {raw!r}")
    response = Response(int(first[1]), first[2], headers, "eof", head=raw)
    if codings:
        if codings[0].lower() != b"chunked":
            raise BadResponse(f"transfer-encoding {codings[0]!r}")
        response.framing = "chunked"
    elif lengths:
        if not lengths[0].isdigit():
            raise BadResponse(f"content-length {lengths[0]!r}")
        response.framing, response.length = "length", int(lengths[0])
    if response.status < 200 and (lengths or codings):
        raise BadResponse(f"a framing header in an interim answer: {raw!r}")
    return response
