"""Where a counter's key goes in Redis: its hash tag, and the slot of each tag in a Redis Cluster.

In: a counter's key. Out: "ef:{tag}:key". A Cluster hashes only what is in the braces, and a script may touch one slot only:
64 tags spread the counters over all primaries and still let a batch become few calls. The tag is part of the name under
which a counter lives, so it must never depend on anything but the key.
"""

from __future__ import annotations

from binascii import crc_hqx
from zlib import crc32

__all__ = ["COUNT", "PREFIXES", "PROBES", "SLOTS", "redis_key", "tag_of"]

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
