"""Sentinel failover: finds the primary that sentinels name.

In: the sentinels' addresses and the primary's name.
Out: its present address. A partitioned sentinel may name a former primary. The caller that finds a
replica there calls `doubt`, and another sentinel is asked first.
Source: Redis Sentinel client specification.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.rate_limit.address_list import AddressList
from edgefast.rate_limit.connector import Connector
from edgefast.rate_limit.error_reply import Refusal, Refused

__all__ = ["Sentinels"]

_SHARE = 0.3  # of an attempt to connect, for one sentinel


class Sentinels:
    """Finds the primary."""

    def __init__(self, config: ir.RateLimitStore, connector: Connector, deadline: float) -> None:
        """`deadline`: seconds of an attempt."""
        self._share = _SHARE * deadline
        self._master = config.master
        self._connector = connector
        self._servers = AddressList(config.addresses)
        self._was_requested = ""

    async def find(self) -> str:
        """Return "host:port"; raises what asking raises, and Refused when they know no such primary."""
        return await self._servers.ask(self._ask, self._share)

    def doubt(self) -> None:
        """Whoever answered last may be wrong."""
        self._servers.defer(self._was_requested)

    async def _ask(self, address: str) -> str:
        self._was_requested = address
        answer = await self._connector.ask_sentinel(
            address, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._master
        )
        if not answer:
            raise Refused(Refusal("sentinel", f'the sentinel knows no primary "{self._master}"'))
        host, port = (part.decode("ascii") for part in answer)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
