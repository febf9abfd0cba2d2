"""Names of stores: configured addresses, and a bounded number of DNS lookups.

In: "host:port".
Out: host and port; the present IP addresses of the host. Each connection resolves the name again,
because a failover may change its addresses. At most one lookup per name is in progress, even if
callers timed out. Otherwise every attempt would add a lookup at a silent name server.
"""

from __future__ import annotations

import asyncio
import socket

from edgefast.netaddr import read_address

__all__ = ["Names", "split_address"]


def split_address(address: str) -> tuple[str, int]:
    """Split "host:port" or "[v6]:port"."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


class Names:
    """Looks names up on the running loop."""

    def __init__(self) -> None:
        self._lookups: dict[str, asyncio.Task[list[str]]] = {}

    async def resolve(self, host: str) -> list[str]:
        """Return the addresses of a host, the first being the one to try first; raises socket.gaierror."""
        address = read_address(host)
        if address is not None:
            return [str(address)]
        lookup = self._lookups.get(host)
        if lookup is None:
            loop = asyncio.get_running_loop()
            lookup = loop.create_task(_look_up(loop, host))
            self._lookups[host] = lookup
            lookup.add_done_callback(lambda done: self._forget(host, done))
        return await asyncio.shield(lookup)

    def _forget(self, host: str, done: asyncio.Task[list[str]]) -> None:
        del self._lookups[host]
        if not done.cancelled():
            done.exception()  # whoever asked has given up: nobody else will look at it

    def close(self) -> None:
        """Give all look-ups up."""
        for lookup in self._lookups.values():
            lookup.cancel()


async def _look_up(loop: asyncio.AbstractEventLoop, host: str) -> list[str]:
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))
