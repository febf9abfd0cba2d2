"""Whether a server may throw counters away when its memory is full: asked once when it is first connected to.

In: a fresh link. Out: the policy's name when counters may go, and one warning. Counters carry an expiry, so `volatile-*` takes them
as `allkeys-*` does: what is left is `noeviction`, or no `maxmemory`. `CONFIG GET` is asked first, `INFO memory` where an ACL or a
provider refuses that; who refuses both is not asked again. An answer has the store's own time.
Source: Redis, "Key eviction".
Must never: keep a store from being used, or write down what a server says but for the name of a policy.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

from edgefast.ratelimit.link import Link

__all__ = ["find_eviction", "tell_eviction"]

_log = logging.getLogger("edgefast.ratelimit")

# A pattern, because Redis 6 takes one parameter only.
_CONFIG = b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$10\r\nmaxmemory*\r\n"
_INFO = b"*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n"
_EVICTS = re.compile(rb"(?:allkeys|volatile)-[a-z]{1,16}")


async def tell_eviction(link: Link, address: str) -> None:
    """Ask, and warn when counters may be forgotten."""
    policy = await find_eviction(link)
    if policy:
        _log.warning(
            "rate limits: %s has maxmemory-policy %s: it may forget counters when its memory is full, and limits let more pass then; "
            "set noeviction, and give limits a Redis of their own",
            address,
            policy,
        )


async def find_eviction(link: Link) -> str:
    """Return the policy by which counters may go; "" when they stay, or nobody says."""
    said = _read_config(await link.ask(_CONFIG)) or _read_info(await link.ask(_INFO))
    policy = said.get(b"maxmemory-policy", b"")
    if said.get(b"maxmemory", b"0") == b"0" or not _EVICTS.fullmatch(policy):
        return ""
    return policy.decode()


def _read_config(reply: Any) -> dict[bytes, bytes]:
    if not isinstance(reply, list) or not all(isinstance(one, bytes) for one in reply):
        return {}
    return dict(zip(reply[::2], reply[1::2], strict=False))


def _read_info(reply: Any) -> dict[bytes, bytes]:
    return dict(_lines_of(reply)) if isinstance(reply, bytes) else {}


def _lines_of(reply: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in reply.splitlines():
        name, _, value = line.partition(b":")
        yield name.replace(b"_", b"-"), value
