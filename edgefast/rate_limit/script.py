"""Script: the script of the Redis store and its calls, packed for the wire.

In: checks.
Out: bytes of `EVALSHA sha nkeys keys... arguments...`, one argument of 11 bytes for each key. The
answer is one string, ANSWER_SIZE bytes for each check, and goes to the engine unchanged.
Must never: change the order of the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha1
from pathlib import Path
from struct import Struct
from typing import Any, Protocol, cast

import hiredis

from edgefast.rate_limit.tags import PROBES, redis_key

__all__ = [
    "ANSWER_SIZE",
    "LOAD",
    "MAX_KEYS",
    "SHA",
    "TEXT",
    "Check",
    "pack_checks",
    "pack_probe",
    "pack_words",
    "read_answers",
]

TEXT = Path(__file__).with_name("window.lua").read_bytes()

#: What `SCRIPT LOAD` answers and `EVALSHA` wants.
SHA = sha1(TEXT, usedforsecurity=False).hexdigest().encode()

#: Keys of one call: about a millisecond of the store's time, which serves nobody else meanwhile.
MAX_KEYS = 512

# hiredis types its argument as a tuple of one.
_pack = cast(Callable[[tuple[bytes | int, ...]], bytes], hiredis.pack_command)
_pack_terms = Struct("<HIIB").pack  # n, limit, unit, sliding: ARGV of window.lua
_ANSWER = Struct("<II5s5s")  # the answer for a key
ANSWER_SIZE = _ANSWER.size
_PROBE_TERMS = _pack_terms(1, 2**32 - 1, 1, 0)


class Check(Protocol):
    """One counter that a request meets, or several requests of one turn; a class of the engine."""

    @property
    def key(self) -> bytes: ...  # of the counter
    @property
    def n(self) -> int: ...  # requests, 1 to 65535
    @property
    def limit(self) -> int: ...  # per window, 0 to 2^32 - 1
    @property
    def unit(self) -> int: ...  # seconds
    @property
    def sliding(self) -> bool: ...

    def pack(self, checks: list[Any]) -> bytes: ...  # pack_words of these; all are of one class


def pack_words(checks: Sequence[Check]) -> bytes:
    """What `Check.pack` does, in plain words: every key in Redis and then every argument, as bulk strings of the protocol."""
    names = [redis_key(one.key) for one in checks]
    terms = [_pack_terms(one.n, one.limit, one.unit, one.sliding) for one in checks]
    return b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in (*names, *terms))


def read_answers(answers: bytes) -> list[tuple[int, int, int, int]]:
    """Read admitted, remaining, reset (ms) and window (Unix seconds) of each check, as the engine does."""
    return [
        (admitted, remaining, int.from_bytes(reset, "little"), int.from_bytes(window, "little"))
        for admitted, remaining, reset, window in _ANSWER.iter_unpack(answers)
    ]


def pack_checks(checks: list[Check]) -> bytes:
    """Pack one call for 1 to MAX_KEYS checks. Their words come from the engine."""
    count = b"%d" % len(checks)
    head = b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$%d\r\n%b\r\n" % (
        3 + 2 * len(checks),
        SHA,
        len(count),
        count,
    )
    return head + checks[0].pack(checks)


def pack_probe(tag: int) -> bytes:
    """Pack a call that counts on a key of nobody, which is gone two seconds later.

    It succeeds only where a check would: the script is there, the server is a primary, it may write, and it owns the tag.
    """
    return _pack((b"EVALSHA", SHA, 1, PROBES[tag], _PROBE_TERMS))


#: Makes the server know the script.
LOAD = _pack((b"SCRIPT", b"LOAD", TEXT))
