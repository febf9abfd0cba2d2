"""The script of the Redis store and the calls of it, packed for the wire.

In: checks. Out: bytes of `EVALSHA sha nkeys keys... arguments...`, one argument of 11 bytes for each key; the answer to it
is four integers for each check. One pass, no object per check that outlives the call.
Must never: change the order of the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha1
from pathlib import Path
from struct import Struct
from typing import Protocol, cast

import hiredis

from edgefast.ratelimit.tags import PROBES, redis_key

__all__ = [
    "LOAD",
    "MAX_KEYS",
    "SHA",
    "TEXT",
    "Check",
    "name_words",
    "pack_checks",
    "pack_probe",
    "term_words",
]

TEXT = Path(__file__).with_name("window.lua").read_bytes()

#: What `SCRIPT LOAD` answers and `EVALSHA` wants.
SHA = sha1(TEXT, usedforsecurity=False).hexdigest().encode()

#: Keys of one call: about a millisecond of the store's time, which serves nobody else meanwhile.
MAX_KEYS = 512

# hiredis types its argument as a tuple of one.
_pack = cast(Callable[[tuple[bytes | int, ...]], bytes], hiredis.pack_command)
_pack_terms = Struct("<HIIB").pack  # n, limit, unit, sliding: ARGV of window.lua
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
    @property
    def name(self) -> bytes: ...  # name_words of the key
    @property
    def terms(self) -> bytes: ...  # term_words of the rest


def name_words(key: bytes) -> bytes:
    """What `Check.name` is: the key in Redis as a bulk string of the protocol."""
    name = redis_key(key)
    return b"$%d\r\n%b\r\n" % (len(name), name)


def term_words(n: int, limit: int, unit: int, sliding: bool) -> bytes:
    """What `Check.terms` is: the argument of a key as a bulk string."""
    return b"$11\r\n%b\r\n" % _pack_terms(n, limit, unit, sliding)


def pack_checks(checks: Sequence[Check]) -> bytes:
    """Pack one call for up to MAX_KEYS checks. Their words come ready from the engine: a key costs two look-ups here."""
    count = b"%d" % len(checks)
    head = b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$%d\r\n%b\r\n" % (
        3 + 2 * len(checks),
        SHA,
        len(count),
        count,
    )
    return b"".join((head, *[one.name for one in checks], *[one.terms for one in checks]))


def pack_probe(tag: int) -> bytes:
    """Pack a call that counts on a key of nobody, which is gone two seconds later.

    It succeeds only where a check would: the script is there, the server is a primary, it may write, and it owns the tag.
    """
    return _pack((b"EVALSHA", SHA, 1, PROBES[tag], _PROBE_TERMS))


#: Makes the server know the script.
LOAD = _pack((b"SCRIPT", b"LOAD", TEXT))
