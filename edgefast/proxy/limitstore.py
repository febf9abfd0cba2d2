"""The worker's counter store: what the table says of it, in use.

In: `ir.RateLimitStore` of each table (None: no rule has limits). Out: the engine's Limiter asks the
memory that all workers share, or Redis. A store is made anew only when its settings change: limits
that are asked at that moment are answered by policy. Must never log an address's secrets.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.core.engine import Limiter
from edgefast.ratelimit.redis_store import RedisStore

__all__ = ["StoreInUse"]


class StoreInUse:
    """See the module's text."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._config: ir.RateLimitStore | None = None
        self._store: RedisStore | None = None

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
        if before is not None:
            before.close()

    def close(self) -> None:
        """Let go of connections."""
        self.adopt(None)
