"""SingleStore: all counters at one server: the configured one, or the primary that sentinels name.

In: checks.
Out: one call for all of them (one per 512). Every new connection asks the sentinels and resolves
names again, so a reconnect follows a failover.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgefast import ir
from edgefast.rate_limit.call import Call, cut_calls
from edgefast.rate_limit.connector import Connector
from edgefast.rate_limit.error_reply import Refused
from edgefast.rate_limit.link import Link
from edgefast.rate_limit.primary import Callbacks, Primary
from edgefast.rate_limit.script import MAX_KEYS, Check
from edgefast.rate_limit.sentinel_failover import Sentinels

__all__ = ["SingleStore"]


class SingleStore:
    """The one primary of a store that is no Cluster."""

    def __init__(
        self, config: ir.RateLimitStore, connector: Connector, callbacks: Callbacks, deadline: float
    ) -> None:
        self._connector = connector
        self._address = config.addresses[0]
        self._sentinels = (
            Sentinels(config, connector, deadline) if config.mode == "sentinel" else None
        )
        name = f'the primary "{config.master}"' if self._sentinels else self._address
        self._primary = Primary(name, self._open, callbacks, deadline, config.timeout / 1000)
        self.primaries: Sequence[Primary] = (self._primary,)
        self.start = self._primary.start
        self.expire = self._primary.expire
        self.close = self._primary.close

    @property
    def available(self) -> bool:
        """Its breaker is closed."""
        return not self._primary.retry.breaker.open

    def submit(self, checks: list[Check]) -> None:
        """Send everything."""
        if len(checks) <= MAX_KEYS:
            self._primary.submit([Call(checks)])
        else:
            self._primary.submit(cut_calls(checks))

    async def _open(self) -> Link:
        if self._sentinels is None:
            return await self._connector.open(self._address, 0)
        address = await self._sentinels.find()
        try:
            return await self._connector.open(address, 0)
        except Refused:
            self._sentinels.doubt()
            raise
