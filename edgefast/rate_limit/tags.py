"""Hash tags: the location of a counter's key in Redis: its tag, and the slot of each tag in a Redis Cluster.

In: a counter's key.
Out: "ef:{tag}:key". A Cluster hashes only the text in the braces, and a script may use one slot
only. 64 tags distribute the counters over all primaries and still keep the number of calls per
batch small. The tag is part of a counter's name.
Must never: depend on anything but the key.
"""

from __future__ import annotations

from binascii import crc_hqx
from typing import Any
from zlib import crc32

__all__ = [
    "COUNT",
    "PREFIXES",
    "PROBES",
    "SLOTS",
    "complete_address",
    "read_slots",
    "redis_key",
    "tag_of",
]


COUNT = 64

PREFIXES = tuple(b"ef:{%02x}:" % tag for tag in range(COUNT))

#: A key of each tag that no counter has: what a new connection is tried with.
PROBES = tuple(prefix + b"probe" for prefix in PREFIXES)

#: The Cluster slot of each tag (Redis Cluster specification, "Hash tags").
SLOTS = tuple(crc_hqx(b"%02x" % tag, 0) % 16384 for tag in range(COUNT))


def tag_of(key: bytes) -> int:
    """The tag of a counter, 0 to 63."""
    return crc32(key) & (COUNT - 1)


def redis_key(key: bytes) -> bytes:
    """The name in Redis of a counter."""
    return PREFIXES[tag_of(key)] + key


# --- which primary of a Redis Cluster owns which of the 64 tags ---


def read_slots(reply: list[Any], requested: str) -> tuple[str, ...]:
    """Read the owners; `requested` is "host:port"."""
    owners = [""] * len(SLOTS)
    for first, last, primary, *_ in reply:
        host = (primary[0] or b"").decode("ascii")
        if host == "?":
            continue
        address = complete_address(f"{host}:{primary[1]}", requested)
        for tag, slot in enumerate(SLOTS):
            if first <= slot <= last:
                owners[tag] = address
    return tuple(owners)


def complete_address(address: str, requested: str) -> str:
    """Make "host:port" of what a node says: no host is the one it was asked at, a bare IPv6 address gets its brackets."""
    host, _, port = address.rpartition(":")
    if not host:
        host = requested.rpartition(":")[0]
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
