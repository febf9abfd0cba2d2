"""The worker's counter store: what the table says of it, in use.

In: `ir.RateLimitStore` of each table (None: no rule has limits). Out: the engine's Limiter asks the
memory that all workers share, or Redis. A store is made anew only when its settings change: limits
that are asked at that moment are answered by policy. Must never log an address's secrets.
"""

from __future__ import annotations

import asyncio

from edgefast import ir
from edgefast.core.engine import Limiter
from edgefast.ratelimit.redis_store import RedisStore

__all__ = ["StoreInUse"]

_LOOK = 0.005  # seconds between two looks whether a new store has answered


class StoreInUse:
    """See the module's text."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._config: ir.RateLimitStore | None = None
        self._store: RedisStore | None = None
        self._new = False

    def adopt(self, config: ir.RateLimitStore | None) -> None:
        """Ask the store of these settings from now on."""
        if config == self._config:
            return
        before, self._store, self._config = self._store, None, config
        if config is None or config.kind == "memory":
            plain = config or ir.RateLimitStore()
            self._limiter.use(None, plain.timeout, plain.fail_closed)
        else:
            self._store = RedisStore(config, self._limiter.settle, self._limiter.fail)
            self._limiter.use(self._store, config.timeout, config.fail_closed)
            self._store.start()
            self._new = True
        if before is not None:
            before.close()

    async def connected(self, seconds: float) -> None:
        """Wait until the store has answered once since it was adopted, but no longer than that."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self._store is not None and self._new and loop.time() < end:
            self._new = not self._store.state()["connected"]
            await asyncio.sleep(_LOOK if self._new else 0)
        self._new = False

    def close(self) -> None:
        """Let go of connections."""
        self.adopt(None)
