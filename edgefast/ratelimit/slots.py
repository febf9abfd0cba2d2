"""Which primary of a Redis Cluster owns which of the 64 tags.

In: the reply to CLUSTER SLOTS, and the host it was asked at. Out: 64 addresses, "" where nobody owns the slot.
Source: Redis documentation, CLUSTER SLOTS: a host that is null or empty is the host the question went to, "?" is unknown.
"""

from __future__ import annotations

from typing import Any

from edgefast.ratelimit.tags import SLOTS

__all__ = ["complete_address", "read_slots"]


def read_slots(reply: list[Any], asked: str) -> tuple[str, ...]:
    """Read the owners; `asked` is "host:port"."""
    owners = [""] * len(SLOTS)
    for first, last, primary, *_ in reply:
        host = (primary[0] or b"").decode("ascii")
        if host == "?":
            continue
        address = complete_address(f"{host}:{primary[1]}", asked)
        for tag, slot in enumerate(SLOTS):
            if first <= slot <= last:
                owners[tag] = address
    return tuple(owners)


def complete_address(address: str, asked: str) -> str:
    """Make "host:port" of what a node says: no host is the one it was asked at, a bare IPv6 address gets its brackets."""
    host, _, port = address.rpartition(":")
    if not host:
        host = asked.rpartition(":")[0]
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
