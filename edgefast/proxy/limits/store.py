"""StoreInUse: the worker's counter store, as the table configures it.

In: `ir.RateLimitStore` of each table (None: no rule has limits).
Out: the engine's Limiter uses the shared memory of all workers, or Redis. A store is created again
only when its settings change; limit checks in progress at that moment follow the failure policy.
The worker reports uncounted limits to the agent in bounded messages, and counts them in a cell.
Must never: log the credentials of an address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from edgefast import ir
from edgefast.core.engine import Limiter
from edgefast.proxy.control import messages
from edgefast.proxy.control.channel import ChannelClosed
from edgefast.rate_limit.redis_store import RedisStore
from edgefast.rate_limit.store_status import MOST, StoreStatus

__all__ = ["StoreInUse"]

_LOOK = 0.005  # seconds between two looks whether a new store has answered
_TOLD = (
    25  # limits of one message: with their names far below a frame, beside places (standing.MOST)
)
_DOWN = "limit_stores_down_active"


class StoreInUse:
    """Gives a worker's Limiter the counter store that the table configures."""

    def __init__(self, limiter: Limiter, count: Callable[[str, int], None]) -> None:
        """`count` adds to a global cell."""
        self._limiter = limiter
        self._count = count
        self._standing: StoreStatus | None = None  # None: not known yet
        self._over: dict[str, str] = {}  # what became of places, as far as it is not told
        self._is_down = False
        self._crowded: dict[tuple[str, str], int] = {}  # (route, limit): milliseconds
        self._wakeup = asyncio.Event()
        limiter.on_crowded = self._on_crowded
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
            self._store = RedisStore(
                config, self._limiter.settle, self._limiter.fail, self._on_standing
            )
            self._limiter.use(self._store, config.timeout, config.fail_closed)
            self._store.start()
            self._new = True
        if self._store is None:
            self._on_standing(StoreStatus())
        else:
            self._count_down(StoreStatus())
            self._standing = None
        if before is not None:
            before.close()

    def _on_standing(self, standing: StoreStatus) -> None:
        self._count_down(standing)
        self._standing = standing
        self._over.update(standing.over)
        self._wakeup.set()

    def _count_down(self, standing: StoreStatus) -> None:
        down = bool(standing.down)
        if down != self._is_down:
            self._is_down = down
            self._count(_DOWN, 1 if down else -1)

    def _on_crowded(self, route: str, limit: str, left: int) -> None:
        if len(self._crowded) < _TOLD:
            self._crowded[route, limit] = left
            self._wakeup.set()

    async def tell(self, say: Callable[[messages.WorkerMessage], Awaitable[None]]) -> None:
        """Tell the agent what is not counted, whenever that changes."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            crowded, self._crowded = self._crowded, {}
            reported = tuple((*names, left) for names, left in crowded.items())
            standing, over, self._over = self._standing, tuple(self._over.items()), {}
            if standing is not None:
                standing = msgspec.structs.replace(standing, over=over[-MOST:])
            closed = self._config is not None and self._config.fail_closed
            with suppress(ChannelClosed):  # whoever receives finds out, and decides
                await say(messages.Uncounted(standing, closed, reported))

    async def connected(self, seconds: float) -> None:
        """Wait until the store has answered once since it was adopted, but no longer than that."""
        if self._store is None and self._standing is None:
            self._on_standing(StoreStatus())  # whatever a predecessor told is over
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self._store is not None and self._new and loop.time() < end:
            self._new = not self._store.state()["connected"]
            await asyncio.sleep(_LOOK if self._new else 0)
        self._new = False

    def close(self) -> None:
        """Let go of connections."""
        self.adopt(None)
