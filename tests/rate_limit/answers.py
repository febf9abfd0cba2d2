"""What window.lua answers for one check, as bytes."""

from __future__ import annotations


def pack_answer(admitted: int, remaining: int, reset_ms: int, window: int) -> bytes:
    """The 18 bytes for one check."""
    times = reset_ms.to_bytes(5, "little") + window.to_bytes(5, "little")
    return admitted.to_bytes(4, "little") + remaining.to_bytes(4, "little") + times


def pack_reply(admitted: int, remaining: int, reset_ms: int, window: int) -> bytes:
    """The whole reply to a call with one check."""
    return b"$18\r\n" + pack_answer(admitted, remaining, reset_ms, window) + b"\r\n"
