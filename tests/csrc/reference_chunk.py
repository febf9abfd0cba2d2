"""The chunked decoder again, slow and obvious: one regular expression per line, over all bytes at once.

In: all bytes received so far. Out: `Body`. The rules are those of csrc/chunk.h and RFC 9112 7.1; where csrc gives up at the
first wrong byte, this one finds the longest prefix that could still become right. Must never share code with csrc.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
SIZE = re.compile(rb"[0-9a-fA-F]{1,16}")
EXTENSION = re.compile(
    rb';%(t)b+(?:=(?:%(t)b+|"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?' % {b"t": TOKEN}
)
TRAILER = re.compile(rb"%b+:[\t -~\x80-\xff]*\r\n" % TOKEN)
MOST_EXTENSIONS = 16 * 1024
MOST_TRAILERS = 50
MOST_TRAILER_BYTES = 8 * 1024


@dataclass
class Body:
    """verdict: done, more or bad. used: bytes up to the end of the message, meaningful for done. trailers: their lines so far, not for bad."""

    verdict: str = "more"
    data: bytes = b""
    used: int = 0
    trailers: bytes = b""


def decode(data: bytes) -> Body:
    """The outcome for these bytes. A wrong body is found at its end at the latest, not at the first wrong byte."""
    body = Body()
    at = 0
    extensions = 0
    while True:
        size = SIZE.match(data, at)
        if size is None:
            return _end(body, data[at:] == b"")
        at = size.end()
        if int(size[0], 16) >= 2**63:
            return _end(body, False)
        begin = last = at
        while extension := EXTENSION.match(data, at):
            last = at
            at = extension.end()
        if at - begin + extensions > MOST_EXTENSIONS:
            return _end(body, False)
        if data[at : at + 2] != b"\r\n":
            room = MOST_EXTENSIONS - extensions - (last - begin)
            return _end(body, data[at:] in (b"", b"\r") or _may_be_extension(data[last:], room))
        extensions += at - begin
        at += 2
        length = int(size[0], 16)
        if length == 0:
            return _read_trailers(body, data, at)
        body.data += data[at : at + length]
        at += length
        if data[at : at + 2] != b"\r\n":
            return _end(body, data[at:] in (b"", b"\r"))
        at += 2


def _may_be_extension(rest: bytes, room: int) -> bool:
    """Could more bytes make this an extension of at most `room` bytes?"""
    # The shortest completions: of a name or value, of a quoted string, of what follows a backslash.
    endings = (b"", b"a", b'"', b'a"')
    return len(rest) <= room and any(EXTENSION.fullmatch(rest + end) for end in endings)


def _read_trailers(body: Body, data: bytes, at: int) -> Body:
    start = at
    count = 0
    while trailer := TRAILER.match(data, at):
        count += 1
        at = trailer.end()
        if count > MOST_TRAILERS or at - start > MOST_TRAILER_BYTES:
            return _end(body, False)
    rest = data[at:]
    body.trailers = data[start:at] + (b"" if rest[:1] == b"\r" else rest)
    if rest[:2] == b"\r\n":
        body.trailers = data[start:at]
        body.verdict = "done"
        body.used = at + 2
        return body
    if rest in (b"", b"\r"):
        return _end(body, True)
    cut = any(TRAILER.fullmatch(rest + end) for end in (b":\r\n", b"\r\n", b"\n"))
    return _end(
        body, cut and count < MOST_TRAILERS and at - start + len(rest) <= MOST_TRAILER_BYTES
    )


def _end(body: Body, may_grow: bool) -> Body:
    body.verdict = "more" if may_grow else "bad"
    if not may_grow:
        body.trailers = b""
    return body
