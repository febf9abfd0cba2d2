"""Frames of HTTP/2 as bytes, for clients that send more of them than a library would make."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from hpack import Encoder

__all__ = ["frame", "requests"]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Any frame at all."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def requests(
    numbers: Iterable[int], behind: bytes = b"", *, end: bool = True, **more: str
) -> bytes:
    """GET / of "a", or what `more` says, on each of these streams; `behind` is what a frame of type 3 says after each."""
    encoder, data = Encoder(), b""
    head = {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "a"}
    for name, value in more.items():
        pseudo = f":{name}"
        head[pseudo if pseudo in head else name.replace("_", "-")] = value
    for number in numbers:
        data += frame(1, 5 if end else 4, number, encoder.encode(list(head.items())))
        if behind:
            data += frame(3, 0, number, behind)
    return data
