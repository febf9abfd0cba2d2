"""ClusterSource: the objects of a cluster, for the pipeline.

In: the cache, what is seen of fleets, the settings. Out: `ready`, which returns when all that translation may read has
been read: every kind, every referenced Secret and ConfigMap, and the fleets that there are. Must never: give a snapshot in
which something is missing only because it has not been read yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from controller.infra.holdings import Holdings
from controller.kube.cache import Cache
from controller.kube.references import referenced
from edgefast.resources.snapshot import Snapshot
from edgefast.translate.settings import Settings

__all__ = ["ClusterSource"]


class ClusterSource:
    """See the module's text."""

    def __init__(self, cache: Cache, holdings: Holdings, settings: Callable[[], Settings]) -> None:
        self._cache = cache
        self._holdings = holdings
        self._settings = settings
        self._news = asyncio.Event()
        holdings.on_synced.append(self._news.set)

    def mark(self) -> None:
        """Say that the cache has changed."""
        self._news.set()

    async def ready(self) -> None:
        """Return when a snapshot is whole."""
        await self._cache.wait_synced()
        while True:
            self._news.clear()
            if self._holdings.synced:
                snapshot = self._cache.snapshot()
                if self._cache.want(referenced(snapshot, self._settings())):
                    return
            await self._news.wait()

    def snapshot(self) -> Snapshot:
        """Return the objects as they are now."""
        return self._cache.snapshot()
